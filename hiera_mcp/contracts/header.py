"""contract.h: the C interface of a contract. Legal C99 and C++; one text for all cases, chosen by HIERA_CASE."""

import re
from collections.abc import Iterable, Mapping, Sequence

from hiera_mcp.contracts.ctext import comment, ctype, integer_literal, scalar_literal, shape_text, tensor_text
from hiera_mcp.model.contract import Case, Contract, Parameter, Scalar, TensorSpec
from hiera_mcp.model.space import is_cpu

ALIGNMENT = 256
"""Bytes; every pointer of the binding is a multiple of it, as CUDA's own allocations are (CUDA C++ Programming Guide,
5.3.2). The judge's buffers are page-aligned (sandbox/child/layout.py)."""


def render_header(contract: Contract) -> str:
    """The text of contract.h.

    Raises:
        ValueError: two tensors of the interface share a name, or cases differ in more than shapes and scalars.
    """
    check_interface(contract)
    blocks = [
        _banner(contract),
        "#ifndef HIERA_CONTRACT_H\n#define HIERA_CONTRACT_H",
        _includes(contract),
        _constants(contract),
        structs(contract),
        _prototypes(contract),
        "#endif",
    ]
    return "\n\n".join(blocks) + "\n"


def check_interface(contract: Contract) -> None:
    """One name per tensor or scalar; the same fields in each case."""
    first = contract.cases[0]
    names = [t.name for t in (*first.inputs, *contract.parameters, *first.outputs, *first.scalars)]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise ValueError(f"names used twice in the interface: {', '.join(twice)}")
    for case in contract.cases[1:]:
        if _fields_of(case) != _fields_of(first):
            raise ValueError(f"case {case.name} has other tensors than case {first.name}: only shapes may differ")


def _fields_of(case: Case) -> list[tuple[str, str]]:
    return [(t.name, t.dtype) for t in (*case.inputs, *case.outputs)]


def _banner(contract: Contract) -> str:
    return (
        f"/* {comment(contract.task.name)} on {contract.target}, {contract.precision}. Contract {contract.id}.\n"
        "   Fixed file: candidates implement it and are compiled with it, once per case.\n"
        f"   Every pointer that is handed over, `workspace` too, is a multiple of {ALIGNMENT} bytes. */"
    )


def _includes(contract: Contract) -> str:
    lines = ["#include <math.h>", "#include <stddef.h>", "#include <stdint.h>"]
    if not is_cpu(contract.target):
        lines.append("#include <cuda_runtime_api.h>")
        lines += _half_types(contract)
    return "\n".join(lines)


def _half_types(contract: Contract) -> Iterable[str]:
    used = {t.dtype for t in _all_tensors(contract)}
    for dtype, header, name in (
        ("float16", "cuda_fp16.h", "__half"),
        ("bfloat16", "cuda_bf16.h", "__nv_bfloat16"),
    ):
        if dtype in used:
            yield f"#ifdef __cplusplus\n#include <{header}>\n#else\ntypedef uint16_t {name};\n#endif"


def _all_tensors(contract: Contract) -> Iterable[TensorSpec]:
    yield from contract.parameters
    for case in contract.cases:
        yield from (*case.inputs, *case.outputs)


def _constants(contract: Contract) -> str:
    head = (
        "/* Shapes and scalars. A constant that fits is an int: widen it where a product may pass 2^31. */\n"
        f"#ifndef HIERA_CASE\n#define HIERA_CASE 0\n#endif\n#define HIERA_CASES {len(contract.cases)}\n"
        "#define HIERA_NOT_IMPLEMENTED (-1)"
    )
    fixed = [line for p in contract.parameters for line in _shape_constants(p)]
    lines = [head, *fixed]
    for n, case in enumerate(contract.cases):
        lines.append(f"#{'if' if n == 0 else 'elif'} HIERA_CASE == {n} /* {case.name} */")
        lines += [line for t in (*case.inputs, *case.outputs) for line in _shape_constants(t)]
        lines += [_scalar_constant(s) for s in case.scalars]
    lines += ["#else", '#error "HIERA_CASE is not a case of this contract"', "#endif"]
    return "\n".join(lines)


def _shape_constants(spec: TensorSpec) -> list[str]:
    lines = [f"#define HIERA_DIM_{spec.name}_{i} {integer_literal(d)}" for i, d in enumerate(spec.shape)]
    return [*lines, f"#define HIERA_NUMEL_{spec.name} {integer_literal(spec.numel)}"]


def _scalar_constant(scalar: Scalar) -> str:
    literal = scalar_literal(scalar)
    if literal is None:
        return f"#define HIERA_SCALAR_{scalar.name}_IS_NONE 1"
    return f"#define HIERA_SCALAR_{scalar.name} {literal}"


def structs(contract: Contract, lines: Mapping[str, Sequence[str]] | None = None) -> str:
    """The three structs, with all fields or with the given `lines` of some (by the struct's name)."""
    shown = fields(contract) | dict(lines or {})
    where = "dense" if is_cpu(contract.target) else "dense, in device memory"
    remarks = {
        "hiera_inputs": f"{where}; drawn anew for each call; must not be written",
        "hiera_params": f"{where}; parameters and buffers; must not be written",
        "hiera_outputs": f"{where}; each call must write every element",
    }
    return "\n\n".join(_struct(name, shown[name], remark) for name, remark in remarks.items())


def fields(contract: Contract, brief: bool = False) -> dict[str, list[str]]:
    """Struct → its fields, one line each; `brief` leaves out roles and the shapes of further cases."""
    first = contract.cases[0]

    def inputs(n: int) -> str:
        return "" if brief else _case_shapes(contract, n)

    def outputs(n: int) -> str:
        return "" if brief else _case_shapes(contract, n, outputs=True)

    params = [_field(contract, p, "" if brief else _parameter_remark(p), True) for p in contract.parameters]
    return {
        "hiera_inputs": [_field(contract, t, inputs(n), True) for n, t in enumerate(first.inputs)],
        "hiera_params": params,
        "hiera_outputs": [_field(contract, t, outputs(n), False) for n, t in enumerate(first.outputs)],
    }


def _struct(name: str, fields: Sequence[str], remark: str) -> str:
    body = "\n".join(fields) if fields else "    const void* none; /* there are none */"
    return f"/* {remark} */\ntypedef struct {name} {{\n{body}\n}} {name};"


def _field(contract: Contract, spec: TensorSpec, remark: str, const: bool) -> str:
    kind = ("const " if const else "") + ctype(spec.dtype, contract.target)
    return f"    {kind}* {spec.name}; /* {tensor_text(spec)}{comment(remark)} */"


def _case_shapes(contract: Contract, index: int, outputs: bool = False) -> str:
    tensors = [(c.outputs if outputs else c.inputs)[index] for c in contract.cases]
    rest = [shape_text(t.shape) for t in tensors[1:] if t.shape != tensors[0].shape]
    return f"; other cases: {', '.join(rest)}" if rest else ""


def _parameter_remark(parameter: Parameter) -> str:
    """Role, the names of the dimensions, owner: `; weight [out_features, in_features] of Linear fc`."""
    named = re.match(r"\[[^\]]*[A-Za-z][^\]]*\]", parameter.layout)
    return f"; {parameter.role}{f' {named[0]}' if named else ''} of {parameter.consumed_by}"


def _prototypes(contract: Contract) -> str:
    return f'#ifdef __cplusplus\nextern "C" {{\n#endif\n{prototypes(contract)}\n#ifdef __cplusplus\n}}\n#endif'


def prototypes(contract: Contract) -> str:
    """The three functions of the binding (docs/architecture.md); 0 is success."""
    stream = "" if is_cpu(contract.target) else ", cudaStream_t stream"
    return (
        "/* Optional: bytes of scratch memory that prepare and run share; without it `workspace` is NULL. */\n"
        "size_t hiera_workspace_bytes(void);\n"
        "/* Optional, once, timed apart: sees the parameters, never the inputs. Returns 0 for success. */\n"
        f"int hiera_prepare(const hiera_params* params, void* workspace{stream});\n"
        "/* Required: computes all outputs. Returns 0 for success. */\n"
        "int hiera_run(const hiera_inputs* inputs, const hiera_params* params, const hiera_outputs* outputs,\n"
        f"              void* workspace{stream});"
    )
