"""The rules of the spaces on evidence made by hand; tests/unit/compilers has the same with real compilers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.model.space import Space, spaces_of
from hiera_mcp.sandbox.space import Evidence, findings, reason

CPU, GPU = "cpu", "cuda:sm_90a"


def _smallest(target: str, level: int = 0, **evidence: tuple[str, ...]) -> list[str | None]:
    return [f.smallest_space for f in findings(target, spaces_of(target)[level], Evidence(**evidence))]


@pytest.mark.parametrize(
    "path",
    [
        "tiles.h",
        "/usr/include/c++/12/vector",
        "/usr/include/x86_64-linux-gnu/c++/12/bits/c++config.h",
        "/usr/include/x86_64-linux-gnu/bits/types.h",
        "/usr/include/x86_64-linux-gnu/sys/mman.h",
        "/usr/include/stdio.h",
        "/usr/lib/gcc/x86_64-linux-gnu/12/include/immintrin.h",
        "/usr/lib/gcc/x86_64-linux-gnu/12/include/omp.h",
        "/opt/conda/lib/gcc/x86_64-conda-linux-gnu/13.2.0/include/stddef.h",
        "/opt/conda/x86_64-conda-linux-gnu/include/c++/13.2.0/array",
    ],
)
def test_the_language_runtime_is_in_every_space(path: str) -> None:
    assert _smallest(CPU, includes=(path,)) == [] == _smallest(GPU, includes=(path,))


@pytest.mark.parametrize(
    "path",
    [
        "/usr/local/cuda/targets/x86_64-linux/include/cuda_runtime.h",
        "/usr/local/cuda/include/crt/host_config.h",
        "/usr/local/cuda/include/cooperative_groups/details/coalesced_reduce.h",
        "/usr/local/cuda/include/cccl/cuda/std/detail/libcxx/include/__config",
        "/opt/cuda-12.6/include/cuda/std/atomic",
        "/usr/local/cuda/include/vector_types.h",
        "/usr/local/cuda/include/sm_32_intrinsics.hpp",
        "/usr/local/cuda/include/cudaTypedefs.h",
    ],
)
def test_the_toolkits_core_is_pure_cuda_and_foreign_to_the_cpu(path: str) -> None:
    assert _smallest(GPU, includes=(path,)) == []
    assert _smallest(CPU, includes=(path,)) == ["cpp_libraries"]


@pytest.mark.parametrize(
    ("path", "level"),
    [
        ("/usr/local/cuda/include/cccl/cub/cub.cuh", 1),
        ("/usr/local/cuda/include/thrust/sort.h", 1),
        ("/site-packages/cutlass_library/source/include/cute/tensor.hpp", 1),
        ("/site-packages/nvidia/cu13/include/cublas_v2.h", 1),
        ("/usr/local/cuda/include/cufft.h", 1),
        ("/usr/local/cuda/include/cudalibxt.h", 1),
        ("/usr/include/eigen3/Eigen/Core", 1),
        ("/usr/include/x86_64-linux-gnu/cblas.h", 1),
        ("/usr/include/some_library_nobody_has_heard_of.h", 1),
        ("/site-packages/torch/include/torch/csrc/api/include/torch/all.h", 2),
        ("/site-packages/torch/include/ATen/ATen.h", 2),
        ("/usr/include/python3.11/Python.h", 2),
    ],
)
def test_every_other_header_belongs_to_a_library_or_to_pytorch(path: str, level: int) -> None:
    for target in (CPU, GPU):
        assert _smallest(target, includes=(path,)) == [spaces_of(target)[level]]
        assert _smallest(target, level, includes=(path,)) == []


@pytest.mark.parametrize("path", ["/dev/zero", "/proc/self/environ", "/etc/passwd"])
def test_a_file_that_is_no_header_is_in_no_space(path: str) -> None:
    assert _smallest(CPU, 2, includes=(path,)) == [None]


def test_hundreds_of_headers_of_one_library_make_one_finding() -> None:
    root = "/usr/local/cuda/include/cccl/thrust"
    found = findings(GPU, Space.CUDA, Evidence(includes=tuple(f"{root}/h{n}.h" for n in range(300))))
    assert [f.what for f in found] == ["thrust/h0.h"]


def test_no_path_of_the_host_is_told() -> None:
    found = findings(CPU, Space.CPP, Evidence(includes=("/home/someone/site/include/foo/bar.h",)))
    assert [f.what for f in found] == ["foo/bar.h"]


@pytest.mark.parametrize(
    ("soname", "level"),
    [("libcublasLt.so.13", 1), ("libcudnn.so.9", 1), ("libtorch_cuda.so", 2), ("libc10.so", 2), ("libevil.so.1", None)],
)
def test_needed_libraries_are_graded(soname: str, level: int | None) -> None:
    expected = None if level is None else spaces_of(GPU)[level]
    assert _smallest(GPU, needed=("libc.so.6", "libstdc++.so.6", "libgomp.so.1", "libcudart.so.13", soname)) == [
        expected
    ]
    if level is not None:
        assert _smallest(GPU, level, needed=(soname,)) == []


def test_the_cuda_runtime_is_not_part_of_cpp() -> None:
    assert _smallest(CPU, needed=("libcudart.so.13",)) == [None]


@pytest.mark.parametrize(
    "symbol",
    [
        "dlopen",
        "dlsym",
        "dlmopen",
        "__libc_dlopen_mode",
        "system",
        "popen",
        "execve",
        "execvpe",
        "fexecve",
        "fork",
        "vfork",
        "posix_spawn",
        "ptrace",
        "process_vm_readv",
        "syscall",
        "socket",
        "connect",
        "sendmsg",
        "shm_open",
        "open64",
        "openat",
        "fopen",
        "__open_2",
        "memfd_create",
        "_r_debug",
        "_ZNSt13basic_filebufIcSt11char_traitsIcEE4openEPKcSt13_Ios_Openmode",
    ],
)
def test_functions_that_reach_outside_are_in_no_space_and_say_why(symbol: str) -> None:
    (found,) = findings(CPU, Space.CPP_LIBRARIES_PYTORCH, Evidence(symbols=(symbol,)))
    assert found.smallest_space is None and "no space allows" in reason(found)


@pytest.mark.parametrize(
    "symbol",
    [
        "memcpy",
        "malloc",
        "expf",
        "pthread_create",
        "printf",
        "fputs",
        "mmap",
        "madvise",
        "sched_getaffinity",
        "sysconf",
        "GOMP_parallel",
        "omp_get_thread_num",
        "cudaLaunchKernel",
        "__cxa_atexit",
        "_ZNSt6thread15_M_start_threadE",
        "getenv",
        "clock_gettime",
        "hiera_prepare",
        "hiera_workspace_bytes",
        "posix_memalign",
        "__tls_get_addr",
        "reopen_table",
        "qsort",
    ],
)
def test_ordinary_functions_are_inside(symbol: str) -> None:
    assert _smallest(CPU, symbols=(symbol,)) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cublas_v2.h", "cuda_libraries"),
        ("cub/cub.cuh", "cuda_libraries"),
        ("cutlass/gemm.h", "cuda_libraries"),
        ("ATen/ATen.h", "cuda_libraries_pytorch"),
        ("cudnn_frontend.h", "cuda_libraries"),
    ],
)
def test_a_header_that_is_not_installed_is_known_by_its_name(name: str, expected: str) -> None:
    assert _smallest(GPU, missing_includes=(name,)) == [expected]


def test_an_unknown_missing_header_is_no_finding() -> None:
    assert _smallest(GPU, missing_includes=("my_tiles.cuh", "/etc/shadow")) == []


def test_python_is_the_pytorch_space() -> None:
    assert _smallest(GPU, 1, files=("model_new.py",)) == ["cuda_libraries_pytorch"]
    assert _smallest(GPU, 2, files=("model_new.py", "cuda_source.cu")) == []


_THINGS = st.lists(st.text(min_size=1, max_size=40), max_size=6).map(tuple)


@given(st.sampled_from([CPU, GPU]), _THINGS, _THINGS, _THINGS, _THINGS)
def test_a_larger_space_never_forbids_more(
    target: str, includes: tuple[str, ...], needed: tuple[str, ...], symbols: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    evidence = Evidence(includes=includes, needed=needed, symbols=symbols, missing_includes=missing, unresolved=symbols)
    small, middle, large = (set(findings(target, space, evidence)) for space in spaces_of(target))
    assert large <= middle <= small
    assert all(f.smallest_space is None for f in large)
