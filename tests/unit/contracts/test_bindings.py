"""The fixed files of a contract compile, whatever names and values a task brings, and carry the pointers over."""

import ctypes
import os
import re
import shutil
import string
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.contracts.build import build_contract
from hiera_mcp.contracts.ctext import comment, float_literal, integer_literal, string_literal
from hiera_mcp.model.contract import Case, Contract, DType, Precision, Scalar, Task, TensorSpec
from hiera_mcp.model.hardware import Peaks
from hiera_mcp.model.work import Trace, TracedParameter

GXX = shutil.which("g++") or ""
NVCC = shutil.which("nvcc") or ("/usr/local/cuda/bin/nvcc" if Path("/usr/local/cuda/bin/nvcc").exists() else "")
needs_gxx = pytest.mark.skipif(not GXX, reason="g++ is not installed")
PEAKS = Peaks(bandwidth=1e12, flops={"fp32": 1e13, "fp16_tensor": 1e14, "bf16_tensor": 1e14}, basis="round numbers")
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]

LINEAR_RELU = """
#include "contract.h"
extern "C" size_t hiera_workspace_bytes(void) { return sizeof(float) * HIERA_NUMEL_fc_weight; }
extern "C" int hiera_prepare(const hiera_params* params, void* workspace) {
    float* transposed = static_cast<float*>(workspace);
    for (int i = 0; i < HIERA_DIM_fc_weight_0; ++i)
        for (int j = 0; j < HIERA_DIM_fc_weight_1; ++j)
            transposed[j * HIERA_DIM_fc_weight_0 + i] = params->fc_weight[i * HIERA_DIM_fc_weight_1 + j];
    return 0;
}
extern "C" int hiera_run(const hiera_inputs* inputs, const hiera_params* params, const hiera_outputs* outputs,
                         void* workspace) {
    const float* transposed = static_cast<const float*>(workspace);
    for (int r = 0; r < HIERA_DIM_x_0; ++r)
        for (int i = 0; i < HIERA_DIM_out_1; ++i) {
            float sum = params->fc_bias[i];
            for (int j = 0; j < HIERA_DIM_x_1; ++j)
                sum += inputs->x[r * HIERA_DIM_x_1 + j] * transposed[j * HIERA_DIM_out_1 + i];
            outputs->out[r * HIERA_DIM_out_1 + i] = sum > 0 ? sum : 0;
        }
    return 0;
}
"""


def write(contract: Contract, folder: Path, **changed: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (render_files(contract) | changed).items():
        (folder / name).write_text(text)
    return folder


def compile_with(folder: Path, *command: str) -> None:
    done = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def make_trace(
    inputs: Sequence[TensorSpec] = (),
    scalars: Sequence[Scalar] = (),
    outputs: Sequence[TensorSpec] = (TensorSpec(name="out", shape=(2,), dtype="float32"),),
    parameters: Sequence[TracedParameter] = (),
) -> Trace:
    return Trace(
        inputs=tuple(inputs),
        scalars=tuple(scalars),
        forward_order=tuple(t.name for t in (*inputs, *scalars)),
        outputs=tuple(outputs),
        parameters=tuple(parameters),
        operators=(),
        trivial_outputs=None,
    )


def make_contract(trace: Trace, target: str = "cpu", precision: Precision = "float32") -> Contract:
    return build_contract(Task(name="task", source="pass"), target, precision, trace, PEAKS, 1 << 40)


@needs_gxx
def test_the_skeleton_compiles_links_and_says_that_it_is_not_implemented(linear_relu: Contract, tmp_path: Path) -> None:
    folder = write(linear_relu, tmp_path)
    compile_with(folder, GXX, *STRICT, "-O2", "-shared", "-fPIC", "cpu_source.cpp", "cpp_source.cpp", "-o", "case0.so")
    library = ctypes.CDLL(str(folder / "case0.so"))
    library.hiera_flat_contract.restype = ctypes.c_char_p
    assert library.hiera_flat_abi() == 1
    assert library.hiera_flat_contract().decode() == linear_relu.id
    assert library.hiera_flat_has_prepare() == 0
    assert library.hiera_flat_workspace_bytes() == 0
    null = (ctypes.c_void_p * 2)()
    assert library.hiera_flat_prepare(null, None, None) == 0
    assert library.hiera_flat_run(null, null, null, None, None) == -1


@needs_gxx
def test_the_flat_binding_carries_inputs_parameters_and_outputs_in_the_contracts_order(
    linear_relu: Contract, tmp_path: Path
) -> None:
    source = """
    #include "contract.h"
    extern "C" int hiera_run(const hiera_inputs* i, const hiera_params* p, const hiera_outputs* o, void* w) {
        o->out[0] = i->x[0] + 10 * p->fc_weight[0] + 100 * p->fc_bias[0] + 1000 * *static_cast<float*>(w);
        return 7;
    }
    extern "C" size_t hiera_workspace_bytes(void) { return 123; }
    """
    folder = write(linear_relu, tmp_path, **{"cpu_source.cpp": source})
    compile_with(folder, GXX, "-shared", "-fPIC", "cpu_source.cpp", "cpp_source.cpp", "-o", "case0.so")
    library = ctypes.CDLL(str(folder / "case0.so"))
    values = [ctypes.c_float(v) for v in (1, 2, 3, 4)]
    out = ctypes.c_float()
    pointers = [ctypes.addressof(v) for v in values]
    inputs = (ctypes.c_void_p * 1)(pointers[0])
    params = (ctypes.c_void_p * 2)(pointers[1], pointers[2])
    outputs = (ctypes.c_void_p * 1)(ctypes.addressof(out))
    assert library.hiera_flat_workspace_bytes() == 123
    assert library.hiera_flat_run(inputs, params, outputs, ctypes.c_void_p(pointers[3]), None) == 7
    assert out.value == 4321


@needs_gxx
def test_torch_demo_runs_a_right_candidate_and_shows_a_small_difference(linear_relu: Contract, tmp_path: Path) -> None:
    folder = write(linear_relu, tmp_path, **{"cpu_source.cpp": LINEAR_RELU})
    compile_with(folder, GXX, "-O2", "-shared", "-fPIC", "cpu_source.cpp", "cpp_source.cpp", "-o", "case0.so")
    done = subprocess.run(
        [sys.executable, "torch_demo.py", "case0.so"],
        check=False,
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    match = re.fullmatch(r"out \[64, 32\]: greatest difference (\S+), greatest value (\S+)\n", done.stdout)
    assert match
    difference, greatest = float(match[1]), float(match[2])
    assert difference < 1e-5 < greatest


@needs_gxx
def test_torch_demo_refuses_a_library_of_another_contract(linear_relu: Contract, tmp_path: Path) -> None:
    other = linear_relu.model_copy(update={"precision": "float64"})
    folder = write(other, tmp_path)
    compile_with(folder, GXX, "-shared", "-fPIC", "cpu_source.cpp", "cpp_source.cpp", "-o", "case0.so")
    write(linear_relu, tmp_path)
    done = subprocess.run(
        [sys.executable, "torch_demo.py", "case0.so"], check=False, cwd=folder, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert other.id in done.stderr


@needs_gxx
def test_each_case_gets_its_own_constants(linear_relu: Contract, tmp_path: Path) -> None:
    first = linear_relu.cases[0]
    wide = Case(
        name="wide",
        inputs=(TensorSpec(name="x", shape=(5, 96), dtype="float32"),),
        outputs=(TensorSpec(name="out", shape=(5, 32), dtype="float32"),),
        scalars=(Scalar(name="alpha", value=0.5),),
        forward_order=("x",),
    )
    folder = write(linear_relu.model_copy(update={"cases": (first, wide)}), tmp_path)
    check = '#include "contract.h"\nstatic_assert(HIERA_CASES == 2 && HIERA_DIM_x_0 == ROWS, "");\n'
    (folder / "check.cpp").write_text(check)
    for case, rows in ((0, 64), (1, 5)):
        flags = (f"-DHIERA_CASE={case}", f"-DROWS={rows}", "-fsyntax-only")
        compile_with(folder, GXX, *STRICT, *flags, "check.cpp")
        compile_with(folder, GXX, *STRICT, *flags, "cpp_source.cpp")
    unknown = subprocess.run(
        [GXX, "-DHIERA_CASE=2", "-DROWS=1", "check.cpp"], check=False, cwd=folder, capture_output=True, text=True
    )
    assert "not a case of this contract" in unknown.stderr


def test_a_name_used_twice_is_refused(linear_relu: Contract) -> None:
    case = linear_relu.cases[0].model_copy(update={"outputs": (TensorSpec(name="x", shape=(1,), dtype="float32"),)})
    with pytest.raises(ValueError, match="twice in the interface: x"):
        render_files(linear_relu.model_copy(update={"cases": (case,)}))


def test_contract_json_reads_back_as_the_same_contract(linear_relu: Contract) -> None:
    files = render_files(linear_relu)
    again = Contract.model_validate_json(files["contract.json"])
    assert again == linear_relu
    assert again.id == linear_relu.id
    assert files["groundtruth.py"] == linear_relu.task.source


names = st.one_of(
    st.sampled_from(
        ["int", "class", "NULL", "linux", "x", "X", "_", "__global__", "hiera_run", "and", "NAN", "_1", "out"]
    ),
    st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,12}\Z"),
)
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.sampled_from([-(1 << 63), 1 << 63, (1 << 31) - 1, 1 << 31]),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(max_size=12),
    st.text(string.printable, max_size=12),
)
dtypes: st.SearchStrategy[DType] = st.sampled_from(
    ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]
)
shapes = st.lists(st.integers(1, 1 << 33), max_size=5).map(tuple)
hostile = st.one_of(st.text(min_size=1, max_size=30), st.sampled_from(["*/ #error x", "a\\\nb", "??/", "%s\"'", "/*"]))


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    taken = draw(st.lists(names, min_size=1, max_size=9, unique=True))
    kinds = draw(st.lists(st.sampled_from(["input", "scalar", "parameter"]), min_size=len(taken), max_size=len(taken)))
    inputs: list[TensorSpec] = []
    scalars: list[Scalar] = []
    parameters: list[TracedParameter] = []
    for name, kind in zip(taken, kinds, strict=True):
        if kind == "input":
            inputs.append(TensorSpec(name=name, shape=draw(shapes), dtype=draw(dtypes)))
        elif kind == "scalar":
            scalars.append(Scalar(name=name, value=draw(values)))
        else:
            leaf = f"{name}.{draw(names)}"
            words: dict[str, Any] = {"module_path": name, "module_type": draw(hostile), "module_repr": draw(hostile)}
            parameters.append(
                TracedParameter(path=leaf, shape=draw(shapes), dtype=draw(dtypes), buffer=draw(st.booleans()), **words)
            )
    outputs = (TensorSpec(name="out", shape=draw(shapes), dtype=draw(dtypes)),)
    return make_trace(tuple(inputs), tuple(scalars), outputs, tuple(parameters))


@needs_gxx
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=traces(), name=hostile)
def test_rendered_files_compile_for_any_names_shapes_scalars_and_texts(trace: Trace, name: str, tmp_path: Path) -> None:
    contract = build_contract(Task(name=name, source="pass"), "cpu", "float32", trace, PEAKS, 1 << 300)
    folder = write(contract, tmp_path)
    macros = [
        f"  auto scalar_{n} = HIERA_SCALAR_{s.name}; (void)scalar_{n};"
        for n, s in enumerate(contract.cases[0].scalars)
        if s.value is not None
    ]
    use = '#include "contract.h"\nint main() {\n' + "\n".join(macros) + "\n}\n"
    (folder / "all.cpp").write_text('#include "cpp_source.cpp"\n#include "cpu_source.cpp"\n' + use)
    compile_with(folder, GXX, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "all.cpp")
    compile_with(folder, "gcc", "-std=c99", *STRICT, "-Wno-overlength-strings", "-fsyntax-only", "-xc", "contract.h")


@pytest.mark.skipif(not NVCC, reason="nvcc is not installed")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_rendered_files_compile_with_nvcc(architecture: str, tmp_path: Path) -> None:
    inputs = (
        TensorSpec(name="class", shape=(4, 8), dtype="bfloat16"),
        TensorSpec(name="h", shape=(), dtype="float16"),
        TensorSpec(name="mask", shape=(1 << 33,), dtype="bool"),
    )
    scalars = (Scalar(name="mode", value='a"b\\*/'), Scalar(name="alpha", value=0.1))
    trace = make_trace(inputs, scalars, (TensorSpec(name="out", shape=(4,), dtype="bfloat16"),))
    folder = write(make_contract(trace, f"cuda:{architecture}", "bfloat16"), tmp_path)
    sources = ("cuda_source.cu", "cpp_source.cpp")
    compile_with(folder, NVCC, f"-arch={architecture}", "-shared", "-Xcompiler=-fPIC", *sources, "-o", "case0.so")
    symbols = subprocess.run(["nm", "-D", "case0.so"], check=False, cwd=folder, capture_output=True, text=True).stdout
    assert "T hiera_flat_run" in symbols and "w hiera_prepare" in symbols


@needs_gxx
def test_literals_mean_what_they_stand_for(tmp_path: Path) -> None:
    texts = ['"quoted"', "back\\slash", "??/", "*/", "new\nline", "é→", "%d", "\x00\x017", "a\"b'"]
    numbers = [0, -1, (1 << 31) - 1, -(1 << 31), 1 << 31, (1 << 63) - 1, -(1 << 63)]
    reals = [0.1, -0.0, 1e-320, 1.7976931348623157e308, -3.0, 123456789.123456789]
    lines = [
        f'for (char c : std::string_view({string_literal(t)}, {len(t.encode())})) std::printf("%02x", (unsigned char)c);std::puts("");'
        for t in texts
    ]
    lines += [f'std::printf("%lld\\n", (long long){integer_literal(n)});' for n in numbers]
    lines += [f'std::printf("%a\\n", {float_literal(x)});' for x in reals]
    program = "#include <cmath>\n#include <cstdint>\n#include <cstdio>\n#include <string_view>\nint main() {\n"
    (tmp_path / "p.cpp").write_text(program + "\n".join(lines) + "\n}\n")
    compile_with(tmp_path, GXX, "-std=c++17", "p.cpp", "-o", "p")
    out = subprocess.run([tmp_path / "p"], check=False, capture_output=True, text=True).stdout.splitlines()
    assert out[: len(texts)] == [t.encode().hex() for t in texts]
    assert [int(n) for n in out[len(texts) : len(texts) + len(numbers)]] == numbers
    got = [float.fromhex(x) for x in out[len(texts) + len(numbers) :]]
    assert [x.hex() for x in got] == [x.hex() for x in reals]


@given(st.text())
def test_a_comment_cannot_end_early_or_continue(text: str) -> None:
    made = comment(text)
    assert "*/" not in made + "." and "\n" not in made and "\\" not in made and "??/" not in made
    assert not made.endswith("*")
