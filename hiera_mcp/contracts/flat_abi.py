"""cpp_source.cpp (the flat binding that the runner calls) and the skeleton that a candidate starts from."""

from collections.abc import Sequence

from hiera_mcp.contracts.ctext import comment, ctype, shape_text, string_literal
from hiera_mcp.model.contract import Contract, TensorSpec
from hiera_mcp.model.space import is_cpu

MOST_OPERATORS = 20
"""In the head of the skeleton."""
_EXPORT = 'extern "C" __attribute__((visibility("default")))'


def render_flat_abi(contract: Contract) -> str:
    """Fixed file. Pointers come in the order of case.inputs, contract.parameters, case.outputs."""
    cpu = is_cpu(contract.target)
    stream_type = "" if cpu else ", cudaStream_t"
    stream = "" if cpu else ", static_cast<cudaStream_t>(stream)"
    unused = "    (void)stream;\n" if cpu else ""
    first = contract.cases[0]
    parameters = _assignments(contract, "p", "params", contract.parameters, const=True)
    return f"""/* Fixed file, compiled together with the candidate: offers the functions of contract.h without structs. */
#include "contract.h"

extern "C" __attribute__((weak)) size_t hiera_workspace_bytes(void);
extern "C" __attribute__((weak)) int hiera_prepare(const hiera_params*, void*{stream_type});

{_EXPORT} int64_t hiera_flat_abi(void) {{ return 1; }}

{_EXPORT} const char* hiera_flat_contract(void) {{ return {string_literal(contract.id)}; }}

{_EXPORT} size_t hiera_flat_workspace_bytes(void) {{
    return hiera_workspace_bytes ? hiera_workspace_bytes() : 0;
}}

{_EXPORT} int hiera_flat_has_prepare(void) {{ return hiera_prepare ? 1 : 0; }}

{_EXPORT} int hiera_flat_prepare(void* const* params, void* workspace, void* stream) {{
    (void)params;
{unused}    hiera_params p = {{}};
{parameters}
    return hiera_prepare ? hiera_prepare(&p, workspace{stream}) : 0;
}}

{_EXPORT} int hiera_flat_run(void* const* inputs, void* const* params, void* const* outputs, void* workspace,
                             void* stream) {{
    (void)inputs;
    (void)params;
{unused}    hiera_inputs i = {{}};
{_assignments(contract, "i", "inputs", first.inputs, const=True)}
    hiera_params p = {{}};
{parameters}
    hiera_outputs o = {{}};
{_assignments(contract, "o", "outputs", first.outputs, const=False)}
    return hiera_run(&i, &p, &o, workspace{stream});
}}
"""


def _assignments(contract: Contract, struct: str, array: str, tensors: Sequence[TensorSpec], const: bool) -> str:
    prefix = "const " if const else ""
    return "\n".join(
        f"    {struct}.{t.name} = static_cast<{prefix}{ctype(t.dtype, contract.target)}*>({array}[{n}]);"
        for n, t in enumerate(tensors)
    )


def render_skeleton(contract: Contract) -> str:
    """A source that compiles and reports HIERA_NOT_IMPLEMENTED; its head tells what the reference does."""
    cpu = is_cpu(contract.target)
    stream = "" if cpu else ", cudaStream_t stream"
    silence = "" if cpu else "    (void)stream;\n"
    return f"""{_story(contract)}
#include "contract.h"

extern "C" int hiera_run(const hiera_inputs* inputs, const hiera_params* params, const hiera_outputs* outputs,
                         void* workspace{stream}) {{
    (void)inputs;
    (void)params;
    (void)outputs;
    (void)workspace;
{silence}    return HIERA_NOT_IMPLEMENTED;
}}
"""


def _story(contract: Contract) -> str:
    first = contract.cases[0]
    operators = contract.features.operators
    ops = [
        f"//   {o.count} x {comment(o.name)} ({o.kind}, {o.share:.0%} of the time)" for o in operators[:MOST_OPERATORS]
    ]
    left = len(operators) - len(ops)
    lines = [
        f"// {comment(contract.task.name)}: the only file that a candidate writes in the spaces without PyTorch.",
        "// Shapes are constants: HIERA_DIM_<tensor>_<dimension>, HIERA_NUMEL_<tensor>, HIERA_SCALAR_<name>.",
        "// Outputs: " + ", ".join(f"{t.name} {shape_text(t.shape)}" for t in first.outputs) + ".",
        "// The reference runs:",
        *ops,
        *([f"//   and {left} more, in contract.json"] if left else []),
        "// hiera_workspace_bytes and hiera_prepare may be defined too (contract.h says what they are for).",
    ]
    return "\n".join(lines)
