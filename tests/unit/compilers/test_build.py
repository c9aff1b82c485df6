"""Candidates of every fate, built by the real compilers in a real box."""

import asyncio
import ctypes
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hiera_mcp.errors import RequestError
from hiera_mcp.model.work import CheckRequest
from hiera_mcp.sandbox.compilers.build import Built, build
from hiera_mcp.sandbox.isolation.bubblewrap import Bubblewrap

Compile = Callable[..., Awaitable[Built]]
Request = Callable[..., CheckRequest]


async def test_a_cpu_candidate_is_built_once_per_case_and_can_be_loaded(
    compile_candidate: Compile, cpu_source: str
) -> None:
    built = await compile_candidate("cpu", {"cpu_source.cpp": cpu_source})
    assert built.build.ok and built.failure is None and built.findings == ()
    assert sorted(p.name for p in built.folder.iterdir()) == ["case0.so", "case1.so"]
    for name in ("case0.so", "case1.so"):
        assert ctypes.CDLL(str(built.folder / name)).hiera_flat_abi() == 1
    assert built.kind == "c_abi" and "g++" in built.compiler


async def test_cases_differ_in_their_compile_time_constants(compile_candidate: Compile) -> None:
    source = '#include "contract.h"\nextern "C" int numel() { return HIERA_NUMEL_x; }\n'
    source += (
        'extern "C" int hiera_run(const hiera_inputs*, const hiera_params*, const hiera_outputs*, void*) { return 0; }'
    )
    built = await compile_candidate("cpu", {"cpu_source.cpp": source})
    assert [ctypes.CDLL(str(built.folder / f"case{n}.so")).numel() for n in (0, 1)] == [1000, 4096]


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
async def test_a_cuda_candidate_is_built_with_its_kernels_described(
    compile_candidate: Compile, cuda_source: str, target: str
) -> None:
    built = await compile_candidate(target, {"cuda_source.cu": cuda_source})
    assert built.build.ok and built.findings == ()
    (kernel,) = built.build.kernels
    assert kernel.kernel.startswith("relu(") and kernel.registers and kernel.spill_store_bytes == 0
    assert ("code=compute_80" in built.build.command) == (target == "cuda:sm_80")


async def test_a_missing_semicolon_is_reported_with_file_and_line(compile_candidate: Compile, cpu_source: str) -> None:
    built = await compile_candidate("cpu", {"cpu_source.cpp": cpu_source.replace("return 0;", "return 0")})
    assert built.failure == "compile_error" and not built.build.ok
    error = built.build.diagnostics[0]
    assert (error.severity, error.file, error.line) == ("error", "cpu_source.cpp", 6)
    assert built.reason == f"cpu_source.cpp:6: {error.text}"


async def test_a_cuda_error_names_the_candidates_file(compile_candidate: Compile, cuda_source: str) -> None:
    built = await compile_candidate(
        "cuda:sm_80", {"cuda_source.cu": cuda_source.replace("threadIdx.x;", "threadIdx.x")}
    )
    assert built.failure == "compile_error"
    assert (built.build.diagnostics[0].file, built.build.diagnostics[0].line) == ("cuda_source.cu", 4)


@pytest.mark.parametrize(("target", "name"), [("cpu", "cpu_source.cpp"), ("cuda:sm_80", "cuda_source.cu")])
async def test_a_missing_hiera_run_says_what_to_define(compile_candidate: Compile, target: str, name: str) -> None:
    built = await compile_candidate(target, {name: '#include "contract.h"\n'})
    assert built.failure == "compile_error"
    assert "hiera_run" in built.reason and "contract.h" in built.reason


async def test_no_file_of_the_host_can_be_read_through_the_compiler(
    compile_candidate: Compile, cpu_source: str, tmp_path: Path
) -> None:
    secret = tmp_path / "answers"
    secret.write_text("the expected outputs")
    for line in ('#include "/etc/shadow"', f'#include "{secret}"', f'asm(".incbin \\"{secret}\\"");'):
        built = await compile_candidate("cpu", {"cpu_source.cpp": f"{line}\n{cpu_source}"})
        assert built.failure == "compile_error", line
        assert "expected outputs" not in built.build.log and "root:" not in built.build.log


async def test_a_device_that_never_ends_exhausts_the_memory_limit(compile_candidate: Compile, cpu_source: str) -> None:
    source = f'#include "/dev/zero"\n{cpu_source}'
    built = await compile_candidate("cpu", {"cpu_source.cpp": source}, memory_bytes=1 << 30)
    assert built.failure == "resource_limit" and "memory" in built.reason


async def test_a_flood_of_messages_ends_the_build(compile_candidate: Compile) -> None:
    source = '#warning "flood"\n#if __INCLUDE_LEVEL__ < 40\n' + '#include "cpu_source.cpp"\n' * 2 + "#endif\n"
    built = await compile_candidate("cpu", {"cpu_source.cpp": source})
    assert built.failure == "resource_limit" and "1024 KiB" in built.reason
    assert len(built.build.log) < 100_000


async def test_an_endless_template_ends_with_the_time_limit(compile_candidate: Compile) -> None:
    source = """template <int N, class T> struct P {};
    template <int N, class T> struct D { using t = typename D<N - 1, P<N, P<N, T>>>::t; using u = typename D<N - 1, P<0, T>>::t; };
    template <class T> struct D<0, T> { using t = T; };
    D<26, int>::t q;"""
    built = await compile_candidate("cpu", {"cpu_source.cpp": source}, compile_s=1)
    assert built.failure == "timeout" and "1 s" in built.reason


async def test_the_second_build_comes_from_the_cache(
    compile_candidate: Compile, cpu_source: str, tmp_path: Path
) -> None:
    first = await compile_candidate("cpu", {"cpu_source.cpp": cpu_source}, folder=tmp_path)
    second = await compile_candidate("cpu", {"cpu_source.cpp": cpu_source}, folder=tmp_path)
    other = await compile_candidate("cpu", {"cpu_source.cpp": cpu_source + "//"}, folder=tmp_path)
    assert (first.build.cached, second.build.cached, other.build.cached) == (False, True, False)
    assert first.folder == second.folder != other.folder
    assert second.build.model_copy(update={"cached": False}) == first.build
    assert second.instruction_mix == first.instruction_mix != {}
    assert list((tmp_path / "scratch").iterdir()) == []


async def test_a_compile_error_is_cached_but_a_time_limit_is_not(
    compile_candidate: Compile, cpu_source: str, tmp_path: Path
) -> None:
    broken = {"cpu_source.cpp": cpu_source.replace("return 0;", "return 0")}
    assert not (await compile_candidate("cpu", broken, folder=tmp_path)).build.cached
    assert (await compile_candidate("cpu", broken, folder=tmp_path)).build.cached
    slow = {"cpu_source.cpp": cpu_source + "// slow"}
    assert (await compile_candidate("cpu", slow, folder=tmp_path, compile_s=0.01)).failure == "timeout"
    assert (await compile_candidate("cpu", slow, folder=tmp_path)).build.ok


async def test_builders_that_race_for_one_candidate_agree(
    compile_candidate: Compile, cpu_source: str, tmp_path: Path
) -> None:
    builds = [compile_candidate("cpu", {"cpu_source.cpp": cpu_source}, folder=tmp_path) for _ in range(3)]
    built = await asyncio.gather(*builds)
    assert {b.folder for b in built} == {built[0].folder} and all(b.build.ok for b in built)
    assert sorted(p.name for p in built[0].folder.iterdir()) == ["case0.so", "case1.so"]


async def test_a_cancelled_build_leaves_no_work_behind(
    compile_candidate: Compile, cpu_source: str, tmp_path: Path
) -> None:
    task = asyncio.ensure_future(compile_candidate("cpu", {"cpu_source.cpp": cpu_source}, folder=tmp_path))
    while not list(tmp_path.glob("scratch/*/cpu_source.cpp")) and not task.done():
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list(tmp_path.glob("scratch/*")) == [] and not list(tmp_path.glob("builds/*"))


async def test_own_headers_are_found_next_to_the_source(compile_candidate: Compile, cpu_source: str) -> None:
    sources = {"cpu_source.cpp": f'#include "tiles.h"\n{cpu_source}', "tiles.h": "constexpr int tile = 8;\n"}
    built = await compile_candidate("cpu", sources)
    assert built.build.ok and built.findings == ()


async def test_a_model_new_alone_needs_no_compiler(compile_candidate: Compile) -> None:
    built = await compile_candidate("cpu", {"model_new.py": "class ModelNew: ..."}, level=2)
    assert built.kind == "python" and built.build.ok and built.compiler == ""
    assert (built.folder / "model_new.py").read_text() == "class ModelNew: ..."


async def test_functions_of_a_model_new_need_no_hiera_run(compile_candidate: Compile) -> None:
    sources = {"model_new.py": "class ModelNew: ...", "cpu_source.cpp": 'extern "C" int seven() { return 7; }'}
    built = await compile_candidate("cpu", sources, level=2)
    assert built.build.ok and ctypes.CDLL(str(built.folder / "case0.so")).seven() == 7
    assert (built.folder / "model_new.py").is_file()


async def test_the_reference_never_enters_the_compile_box(compile_candidate: Compile, cpu_source: str) -> None:
    for name in ("groundtruth.py", "contract.json"):
        built = await compile_candidate("cpu", {"cpu_source.cpp": f'#include "{name}"\n{cpu_source}'})
        assert built.failure == "compile_error" and "No such file" in built.reason


@pytest.mark.parametrize(
    "name", ["main.cpp", "contract.h", "../up.h", "a/b.h", "cuda_source.cu", "hiera_blas.h", "x.so", "", ".h", "a b.h"]
)
async def test_other_file_names_are_refused_with_the_valid_ones(
    make_request: Request, cpu_source: str, name: str, tmp_path: Path
) -> None:
    request = make_request("cpu", {"cpu_source.cpp": cpu_source, name: ""})
    with pytest.raises(RequestError, match=r"cpu_source\.cpp"):
        await build(request, Bubblewrap(), tmp_path, _silent)


async def test_a_model_new_is_refused_outside_the_pytorch_space(make_request: Request, tmp_path: Path) -> None:
    request = make_request("cpu", {"model_new.py": ""}, level=1)
    with pytest.raises(RequestError, match="cpp_libraries_pytorch"):
        await build(request, Bubblewrap(), tmp_path, _silent)


async def test_a_candidate_without_a_source_is_refused(make_request: Request, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no source file"):
        await build(make_request("cpu", {"tiles.h": ""}), Bubblewrap(), tmp_path, _silent)


async def _silent(message: str, fraction: float | None) -> None:
    del message, fraction
