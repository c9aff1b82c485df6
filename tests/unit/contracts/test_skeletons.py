"""Header, binding and skeleton of any legal contract compile without a warning, on cpu and with nvcc."""

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.contracts.names import Namer, legal
from hiera_mcp.model.contract import Case, Contract, DType, Parameter, Scalar, TensorSpec
from hiera_mcp.model.space import source_file

GXX = shutil.which("g++") or ""
NVCC = shutil.which("nvcc") or ("/usr/local/cuda/bin/nvcc" if Path("/usr/local/cuda/bin/nvcc").exists() else "")
needs_gxx = pytest.mark.skipif(not GXX, reason="g++ is not installed")
needs_nvcc = pytest.mark.skipif(not NVCC, reason="nvcc is not installed")
WARNINGS = ("-Wall", "-Wextra", "-Werror")
HEADERS = [
    "math.h",
    "stddef.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "string.h",
    "errno.h",
    "signal.h",
    "complex.h",
    "limits.h",
]
CUDA_HEADERS = ["cuda_runtime.h", "cuda_fp16.h", "cuda_bf16.h"]

ODD_NAMES = [
    *[
        "int",
        "class",
        "template",
        "and",
        "xor",
        "NULL",
        "NAN",
        "INT_MAX",
        "signal",
        "errno",
        "major",
        "minor",
        "linux",
        "unix",
        "I",
        "y0",
        "j1",
        "gamma",
        "index",
        "time",
    ],
    *[
        "int64_t",
        "size_t",
        "uint8_t",
        "float16",
        "half",
        "bool_",
        "complex",
        "cudaStream_t",
        "cudaMemcpy",
        "hiera_run",
        "HIERA_CASE",
        "contract",
    ],
    *[
        "inputs",
        "params",
        "outputs",
        "workspace",
        "stream",
        "none",
        "p",
        "i",
        "o",
        "x",
        "X",
        "a.b",
        "a_b",
        "A.b",
        "a__b",
        "_",
        "__x",
        "x_",
        "1x",
        "é",
        "数",
        "mask_IS_NONE",
        "mask",
    ],
    *[
        "x_0",
        "x_0_0",
        "DIM",
        "NUMEL",
        "M_PIf",
        "M_Ef",
        "si_pid",
        "P_tmpdir",
        "L_tmpnam",
        "NV_HAS_FEATURE_SM_90a",
        "std",
        "main",
        "this",
        "new",
        "delete",
    ],
    "a" * 300,
    "layers.0.blocks.11.attention.self.query.weight",
    "with space",
    "dash-ed",
    "",
]
DTYPES: tuple[DType, ...] = (
    *("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"),
)
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.sampled_from([-(1 << 63), (1 << 63) - 1, 1 << 31, -(1 << 31)]),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(['"', "\\", "*/", "??/", 'a"b\n', "%d", "\x00", "//", "#error"]),
)
shapes = st.lists(st.sampled_from([1, 2, 3, 64, 1 << 16, 1 << 33]), max_size=4).map(tuple)


@st.composite
def contracts(draw: st.DrawFn, base: Contract, target: str) -> Contract:
    """Any names, as build_contract would make them legal; several cases; every type; scalars and draws."""
    wanted = draw(st.lists(st.one_of(st.sampled_from(ODD_NAMES), st.text(max_size=20)), min_size=3, max_size=12))
    namer = Namer()
    names = [namer.name(n) for n in wanted]
    kinds = draw(st.lists(st.sampled_from("ips"), min_size=len(names), max_size=len(names)))
    types: dict[str, DType] = {n: draw(st.sampled_from(DTYPES)) for n in names}
    inputs = [n for n, k in zip(names, kinds, strict=True) if k == "i"]
    scalars = [n for n, k in zip(names, kinds, strict=True) if k == "s"]
    outputs = [namer.name(n, "out") for n in draw(st.lists(st.sampled_from(ODD_NAMES), min_size=1, max_size=3))]
    types |= {n: draw(st.sampled_from(DTYPES)) for n in outputs}

    def specs(of: Iterable[str]) -> tuple[TensorSpec, ...]:
        return tuple(TensorSpec(name=n, shape=draw(shapes), dtype=types[n]) for n in of)

    cases = [
        Case(
            name=f"case_{k}",
            inputs=specs(inputs),
            scalars=tuple(Scalar(name=n, value=draw(values)) for n in scalars),
            outputs=specs(outputs),
            forward_order=(*inputs[1:], *scalars),
            draws=tuple(inputs[:1]),
        )
        for k in range(draw(st.integers(1, 3)))
    ]
    texts = st.text(min_size=1, max_size=20)
    parameters = [
        Parameter(path=n, role=draw(texts), layout=draw(texts), consumed_by=draw(texts), **vars(spec))
        for n, spec in zip(names, specs(names), strict=True)
        if n not in inputs and n not in scalars
    ]
    update = {"target": target, "cases": tuple(cases), "parameters": tuple(parameters)}
    return base.model_copy(update=update)


def write(contract: Contract, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in render_files(contract).items():
        (folder / name).write_text(text)
    return folder


def compiled(folder: Path, *command: str) -> None:
    done = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr


def uses(contract: Contract, case: int) -> str:
    """A function that mentions each constant and each field of the contract once."""
    chosen = contract.cases[case]
    lines: list[str] = []
    for t in (*chosen.inputs, *contract.parameters, *chosen.outputs):
        lines += [
            f'static_assert(HIERA_NUMEL_{t.name} == {t.numel if t.numel < 1 << 63 else f"HIERA_NUMEL_{t.name}"}, "");'
        ]
        lines += [f'static_assert(HIERA_DIM_{t.name}_{n} == {d}, "");' for n, d in enumerate(t.shape)]
    for s in chosen.scalars:
        suffix = "_IS_NONE" if s.value is None else ""
        lines += [f"{{ [[maybe_unused]] auto value = HIERA_SCALAR_{s.name}{suffix}; }}"]
    for pointer, tensors in (("i", chosen.inputs), ("p", contract.parameters), ("o", chosen.outputs)):
        lines += [f"(void)({pointer}->{t.name});" for t in tensors]
    body = "\n    ".join(lines)
    return (
        "void mention(const hiera_inputs* i, const hiera_params* p, const hiera_outputs* o);\n"
        f"void mention(const hiera_inputs* i, const hiera_params* p, const hiera_outputs* o) {{\n"
        f"    (void)i; (void)p; (void)o;\n    {body}\n}}\n"
    )


@needs_gxx
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_legal_contract_compiles_on_cpu_without_a_warning(
    linear_relu: Contract, tmp_path: Path, data: st.DataObject
) -> None:
    contract = data.draw(contracts(linear_relu, "cpu"))
    folder = write(contract, tmp_path)
    case = data.draw(st.integers(0, len(contract.cases) - 1))
    (folder / "all.cpp").write_text('#include "cpp_source.cpp"\n#include "cpu_source.cpp"\n' + uses(contract, case))
    compiled(folder, GXX, *WARNINGS, "-std=c++17", f"-DHIERA_CASE={case}", "-fsyntax-only", "all.cpp")


@needs_nvcc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_many_odd_contracts_compile_with_nvcc_without_a_warning(
    linear_relu: Contract, tmp_path: Path, architecture: str
) -> None:
    """One call of nvcc for all, under names of their own: starting it is most of the cost."""
    parts: list[str] = []

    @settings(max_examples=12, deadline=None, database=None)
    @given(contracts(linear_relu, f"cuda:{architecture}"))
    def draw(contract: Contract) -> None:
        folder = write(contract, tmp_path / f"c{len(parts)}")
        parts.append(as_part(contract, folder))

    draw()
    (tmp_path / "all.cu").write_text("\n".join(parts))
    flags = (f"-arch={architecture}", "-std=c++17", "-Xcompiler=-Wall,-Wextra", "-Werror=all-warnings")
    compiled(tmp_path, NVCC, *flags, "-c", "all.cu", "-o", "all.o")


def as_part(contract: Contract, folder: Path) -> str:
    """The contract's files and `uses` as a part of a translation unit that holds those of others too."""
    files = ("cpp_source.cpp", source_file(contract.target))
    texts = "".join((folder / name).read_text() for name in ("contract.h", *files))
    ours = sorted({*re.findall(r"\bhiera_\w+", texts), "mention"})
    constants = sorted(set(re.findall(r"#define (HIERA_\w+)", texts)))
    return "\n".join(
        (
            *(f"#define {name} {folder.name}_{name}" for name in ours),
            *(f'#include "{folder.name}/{name}"' for name in files),
            uses(contract, 0),
            *(f"#undef {name}" for name in (*ours, *constants)),
        )
    )


def object_like(command: Sequence[str], headers: Sequence[str], folder: Path, suffix: str) -> set[str]:
    """Macros without arguments that are defined after these headers."""
    source = folder / f"macros.{suffix}"
    source.write_text("".join(f"#include <{h}>\n" for h in headers))
    done = subprocess.run([*command, str(source)], check=True, capture_output=True, text=True)
    return set(re.findall(r"^#define (\w+)(?: |$)", done.stdout, re.MULTILINE))


@needs_gxx
def test_no_legal_name_is_a_macro_of_the_headers_that_candidates_include(tmp_path: Path) -> None:
    command = [GXX, "-std=gnu++17", "-fopenmp", "-dM", "-E"]
    macros = object_like(command, [*HEADERS, "omp.h", "unistd.h"], tmp_path, "cpp")
    assert len(macros) > 500
    assert sorted(m for m in macros if legal(m) in macros) == []


@needs_nvcc
def test_no_legal_name_is_a_macro_of_cuda_headers(tmp_path: Path) -> None:
    command = [NVCC, "-std=c++17", "-arch=sm_90a", "-E", "-Xcompiler", "-dM"]
    macros = object_like(command, [*HEADERS, *CUDA_HEADERS], tmp_path, "cu")
    assert len(macros) > 1000
    assert sorted(m for m in macros if legal(m) in macros) == []


@given(st.lists(st.one_of(st.sampled_from(ODD_NAMES), st.text(max_size=30)), max_size=30))
def test_names_are_identifiers_and_each_is_handed_out_once(wanted: list[str]) -> None:
    namer = Namer()
    made = [namer.name(w) for w in wanted]
    assert len(set(made)) == len(made)
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", m) and "__" not in m for m in made)


@needs_gxx
def test_thousands_of_parameters_compile_without_a_warning(linear_relu: Contract, tmp_path: Path) -> None:
    one = linear_relu.parameters[0]
    many = tuple(one.model_copy(update={"name": f"p{n}", "path": f"layers.{n}.weight"}) for n in range(3000))
    folder = write(linear_relu.model_copy(update={"parameters": many}), tmp_path)
    compiled(folder, GXX, *WARNINGS, "-fsyntax-only", "cpp_source.cpp")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1 << 200])
@needs_gxx
def test_values_that_are_no_numbers_are_constants_too(linear_relu: Contract, tmp_path: Path, value: float) -> None:
    case = linear_relu.cases[0].model_copy(update={"scalars": (Scalar(name="s", value=value),)})
    contract = linear_relu.model_copy(update={"cases": (case,)})
    folder = write(contract, tmp_path)
    (folder / "all.cpp").write_text('#include "cpp_source.cpp"\n#include "cpu_source.cpp"\n' + uses(contract, 0))
    compiled(folder, GXX, *WARNINGS, "-fsyntax-only", "all.cpp")


def test_the_head_of_the_skeleton_says_what_it_leaves_out(linear_relu: Contract) -> None:
    one = linear_relu.features.operators[0]
    features = linear_relu.features.model_copy(update={"operators": (one,) * 25})
    text = render_files(linear_relu.model_copy(update={"features": features}))["cpu_source.cpp"]
    assert "//   and 5 more, in contract.json\n" in text
    assert "more, in contract.json" not in render_files(linear_relu)["cpu_source.cpp"]
