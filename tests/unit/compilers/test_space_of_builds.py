"""Ways to leave a space, each really compiled."""

import platform
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hiera_mcp.sandbox.compilers.build import Built, find_tool
from hiera_mcp.sandbox.elf import read
from hiera_mcp.sandbox.libraries import Place, find, installed, known

Compile = Callable[..., Awaitable[Built]]


def _said(built: Built) -> set[tuple[str, str, str | None]]:
    return {(f.evidence, f.what, f.smallest_space) for f in built.findings}


@pytest.mark.parametrize(
    ("call", "symbol"),
    [
        ('dlopen("libm.so.6", 2) == nullptr', "dlopen"),
        ('system("true")', "system"),
        ('popen("ls", "r") == nullptr', "popen"),
        ("fork()", "fork"),
        ('execl("/bin/true", "true", nullptr)', "execl"),
        ("socket(1, 1, 0)", "socket"),
        ("(int)ptrace(PTRACE_TRACEME, 0, 0, 0)", "ptrace"),
        ("(int)syscall(39)", "syscall"),
        ('fgetc(fopen("/proc/self/mem", "r"))', "fopen"),
    ],
)
async def test_a_function_that_reaches_outside_lies_in_no_space(
    compile_candidate: Compile, cpu_source: str, call: str, symbol: str
) -> None:
    headers = "".join(
        f"#include <{h}>\n" for h in ("dlfcn.h", "unistd.h", "stdlib.h", "stdio.h", "sys/socket.h", "sys/ptrace.h")
    )
    source = headers + cpu_source.replace("return 0;", f"return {call};")
    for level in (0, 1, 2):
        built = await compile_candidate("cpu", {"cpu_source.cpp": source}, level)
        assert _said(built) == {("symbol", symbol, None)}


async def test_an_alias_in_assembly_does_not_hide_a_function(compile_candidate: Compile, cpu_source: str) -> None:
    source = 'extern "C" int run_it(const char*) __asm__("system");\n' + cpu_source.replace(
        "return 0;", 'return run_it("");'
    )
    assert ("symbol", "system", None) in _said(await compile_candidate("cpu", {"cpu_source.cpp": source}))


@pytest.mark.parametrize("section", [".text", ".own"])
async def test_a_system_call_in_assembly_is_seen(compile_candidate: Compile, cpu_source: str, section: str) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("x86-64 assembly")
    body = '{ long r; __asm__ volatile("syscall" : "=a"(r) : "a"(39) : "rcx", "r11"); return (int)r; }'
    source = f'__attribute__((noinline, section("{section}"))) int direct() {body}\n'
    built = await compile_candidate(
        "cpu", {"cpu_source.cpp": source + cpu_source.replace("return 0;", "return direct();")}
    )
    assert _said(built) == {("symbol", "syscall (instruction)", None)}


async def test_a_file_stream_opens_files(compile_candidate: Compile, cpu_source: str) -> None:
    source = "#include <fstream>\n" + cpu_source.replace(
        "return 0;", 'std::ifstream f("/proc/self/maps"); return f.get();'
    )
    built = await compile_candidate("cpu", {"cpu_source.cpp": source})
    assert built.findings and {f.evidence for f in built.findings} == {"symbol"}


async def test_the_c_and_cpp_runtime_openmp_and_intrinsics_are_inside(
    compile_candidate: Compile, cpu_source: str
) -> None:
    headers = ("bits/stdc++.h", "omp.h", "pthread.h", "sys/mman.h", "unistd.h", "sched.h", "memory_resource")
    source = (
        "".join(f"#include <{h}>\n" for h in headers)
        + "#ifdef __x86_64__\n#include <immintrin.h>\n#endif\n"
        + cpu_source
    )
    work = 'std::vector<float> v(100, 1); std::sort(v.begin(), v.end()); std::thread([]{}).join(); printf("%f", std::exp(v[3]));'
    built = await compile_candidate(
        "cpu", {"cpu_source.cpp": source.replace("return 0;", f"{work} return omp_get_num_procs() == 0;")}
    )
    assert built.build.ok and built.findings == ()


async def test_the_toolkits_core_headers_are_inside(compile_candidate: Compile, cuda_source: str) -> None:
    headers = (
        "cooperative_groups.h",
        "cuda_fp16.h",
        "cuda/std/array",
        "cuda.h",
    )
    source = "".join(f"#include <{h}>\n" for h in headers) + cuda_source
    built = await compile_candidate("cuda:sm_80", {"cuda_source.cu": source})
    assert built.build.ok and built.findings == ()


async def test_cub_counts_as_a_library(compile_candidate: Compile, cuda_source: str) -> None:
    sources = {"cuda_source.cu": f"#include <cub/version.cuh>\n{cuda_source}"}
    assert _said(await compile_candidate("cuda:sm_80", sources)) == {("include", "cub/version.cuh", "cuda_libraries")}
    inside = await compile_candidate("cuda:sm_80", sources, level=1)
    assert inside.build.ok and inside.findings == ()


async def test_cublas_leaves_the_pure_space_whether_installed_or_not(
    compile_candidate: Compile, cuda_source: str
) -> None:
    sources = {"cuda_source.cu": f"#include <cublas_v2.h>\n{cuda_source}"}
    pure = await compile_candidate("cuda:sm_80", sources)
    assert ("include", "cublas_v2.h", "cuda_libraries") in _said(pure)
    inside = await compile_candidate("cuda:sm_80", sources, level=1)
    assert inside.findings == ()
    if "cublas" in {library.name for library in installed("cuda:sm_80", find_tool("cuda:sm_80").toolkit)}:
        assert inside.build.ok
    else:
        assert inside.failure == "compile_error"
        assert any("nvidia-cublas" in d.text for d in inside.build.diagnostics)


async def test_a_library_function_declared_by_hand_leaves_the_pure_space(
    compile_candidate: Compile, cpu_source: str
) -> None:
    source = 'extern "C" float cblas_sdot(int, const float*, int, const float*, int);\n'
    source += cpu_source.replace("return 0;", "return (int)cblas_sdot(1, in->x, 1, in->x, 1);")
    assert _said(await compile_candidate("cpu", {"cpu_source.cpp": source})) == {
        ("symbol", "cblas_sdot", "cpp_libraries")
    }


async def test_pytorch_headers_belong_to_the_pytorch_space(compile_candidate: Compile, cpu_source: str) -> None:
    built = await compile_candidate("cpu", {"cpu_source.cpp": f"#include <torch/extension.h>\n{cpu_source}"})
    assert _said(built) == {("include", "torch/extension.h", "cpp_libraries_pytorch")}
    inside = await compile_candidate("cpu", {"cpu_source.cpp": f"#include <torch/extension.h>\n{cpu_source}"}, 2)
    assert inside.failure == "compile_error" and any("model_new.py" in d.text for d in inside.build.diagnostics)


async def test_a_misspelt_header_is_a_compile_error_and_no_more(compile_candidate: Compile, cpu_source: str) -> None:
    built = await compile_candidate("cpu", {"cpu_source.cpp": f"#include <vectr>\n{cpu_source}"})
    assert built.failure == "compile_error" and built.findings == ()


async def test_a_header_that_is_named_by_its_full_path_is_seen_for_what_it_is(
    compile_candidate: Compile, cpu_source: str
) -> None:
    tool = find_tool("cuda:sm_80")
    assert tool.toolkit is not None
    header = (tool.toolkit / "include" / "library_types.h").resolve()
    built = await compile_candidate("cpu", {"cpu_source.cpp": f'#include "{header}"\n{cpu_source}'})
    assert _said(built) == {("include", "library_types.h", "cpp_libraries")}


async def test_an_installed_blas_is_linked_where_libraries_are_allowed(
    compile_candidate: Compile, cpu_source: str
) -> None:
    if "blas" not in {library.name for library in installed("cpu")}:
        pytest.skip("no BLAS with headers is installed (pip install scipy-openblas32)")
    source = "#include <cblas.h>\n" + cpu_source.replace("return 0;", "return (int)cblas_sdot(1, in->x, 1, in->x, 1);")
    inside = await compile_candidate("cpu", {"cpu_source.cpp": source}, 1)
    assert inside.build.ok and inside.findings == ()
    unused = await compile_candidate("cpu", {"cpu_source.cpp": cpu_source}, 1)
    assert "blas" not in str(read((unused.folder / "case0.so").read_bytes()).needed)


def test_a_library_is_found_where_only_versioned_files_exist(tmp_path: Path) -> None:
    include, lib = tmp_path / "include", tmp_path / "lib"
    include.mkdir()
    lib.mkdir()
    (include / "cublas_v2.h").write_text("")
    (include / "cublas_api.h").write_text(
        "#define CUBLAS_VER_MAJOR 13\n#define CUBLAS_VER_MINOR 1\n#define CUBLAS_VER_PATCH 0\n"
    )
    assert find(known("cuda:sm_90a"), (Place(include, lib),)) == ()
    (lib / "libcublas.so.13").write_bytes(b"")
    (library,) = find(known("cuda:sm_90a"), (Place(include, lib),))
    assert (library.name, library.version, library.include) == ("cublas", "13.1.0", include)
    assert library.link_flags == (f"-L{lib}", "-l:libcublas.so.13", f"-Wl,-rpath,{lib}")
    assert {b.host for b in library.binds} == {include, lib}


def test_a_prefixed_openblas_gets_its_usual_names_back(tmp_path: Path) -> None:
    (tmp_path / "cblas.h").write_text("float scipy_cblas_sdot(int n);\nvoid scipy_openblas_set_num_threads(int n);\n")
    (tmp_path / "libscipy_openblas.so").write_bytes(b"")
    (library,) = find(known("cpu"), (Place(tmp_path, tmp_path),))
    assert "#define cblas_sdot scipy_cblas_sdot\n" in library.prelude
    assert "#define openblas_set_num_threads scipy_openblas_set_num_threads\n" in library.prelude
