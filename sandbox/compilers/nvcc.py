"""nvcc for CUDA targets: one shared object with machine code for the target, and PTX where that can help.

Source of flags: CUDA Compiler Driver NVCC 13.0; `-Xptxas -v` lines: its section on printing code generation
statistics.
"""

import re
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from hiera_mcp.errors import ToolchainError
from hiera_mcp.model.evaluation import KernelResources
from hiera_mcp.model.space import Target, architecture, is_cpu
from hiera_mcp.sandbox.compilers.base import Compiler, Job, Tool, library_flags, version_line
from hiera_mcp.sandbox.compilers.gxx import LINK_FLAGS, host_compiler
from hiera_mcp.sandbox.isolation.binds import find_tool as find_program
from hiera_mcp.sandbox.libraries import toolkit_lib

FLAGS = (
    *(
        "-O3",
        "-std=c++17",
        "-lineinfo",
        "--expt-relaxed-constexpr",
        "--extended-lambda",
        "-shared",
        "-cudart",
        "shared",
    ),
    *("-Xcompiler", "-fPIC,-fopenmp,-fmax-errors=30", "-Xptxas", "-v"),
    *("-DNVTX_DISABLE", "-DCCCL_DISABLE_NVTX"),
)
"""NVTX ranges in CUB and Thrust are off: they would load a profiler's library by dlopen, which no space allows."""
_WHERE = ("/opt/cuda/bin/nvcc", "/usr/lib/nvidia-cuda-toolkit/bin/nvcc")


def find(target: Target) -> Tool:
    """The nvcc of this host, with the g++ that it needs.

    Raises:
        ToolchainError: nvcc or g++ is missing, or this nvcc cannot build for the target.
    """
    host_compiler()
    tool = _nvcc()
    legal = _architectures(tool.program)
    if legal and architecture(target) not in legal:
        raise ToolchainError(
            f"{tool.version} cannot build for {target}.",
            todo="Choose another target or install a CUDA toolkit that knows it.",
            valid=[f"cuda:{name}" for name in legal],
        )
    return tool


def command(tool: Tool, job: Job) -> tuple[str, ...]:
    """The command line that builds one case, to be run in the work folder."""
    headers, links = library_flags(job)
    rpath = (f"-Wl,-rpath,{toolkit_lib(tool.toolkit)}",) if tool.toolkit else ()
    return (
        str(tool.program),
        *FLAGS,
        *code_flags(job.target),
        f"-DHIERA_CASE={job.case}",
        "-I.",
        *headers,
        *("-MD", "-MF", job.dependencies),
        *job.units,
        *("-o", job.output),
        *_for_nvcc((*LINK_FLAGS, *rpath, *_driver_library(tool), *links)),
    )


def _driver_library(tool: Tool) -> tuple[str, ...]:
    """The driver API (cuTensorMapEncodeTiled, say) where the toolkit has its stub; the real one comes with the GPU."""
    stub = toolkit_lib(tool.toolkit) / "stubs" / "libcuda.so" if tool.toolkit else None
    return ("-lcuda",) if stub is not None and stub.is_file() else ()


def code_flags(target: Target) -> tuple[str, ...]:
    """Machine code for the target; for a plain architecture also PTX, which newer GPUs compile at load time.

    The PTX of an architecture-specific target (sm_90a) runs on no other GPU, so there it would be dead weight.
    """
    arch = architecture(target)
    virtual = arch.replace("sm_", "compute_")
    real = ("-gencode", f"arch={virtual},code={arch}")
    return real if arch[-1].isalpha() else (*real, "-gencode", f"arch={virtual},code={virtual}")


def _for_nvcc(flags: tuple[str, ...]) -> Iterator[str]:
    """Linker flags in nvcc's spelling: `-Wl,a,b` becomes `-Xlinker a -Xlinker b`."""
    for flag in flags:
        if flag.startswith("-Wl,"):
            for part in flag.split(",")[1:]:
                yield from ("-Xlinker", part)
        else:
            yield flag


_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def kernels(log: str) -> tuple[KernelResources, ...]:
    """What `ptxas -v` says of each kernel, under its mangled name. Device functions are left out."""
    found: list[KernelResources] = []
    name, frame = "", None
    for line in log.splitlines():
        if entry := _ENTRY.search(line):
            name, frame = entry.group(1), None
        elif name and (spills := _SPILLS.search(line)):
            frame = frame or spills
        elif name and (used := _USED.search(line)):
            found.append(_resources(name, line, used, frame))
            name = ""
    return tuple(found)


def _resources(name: str, line: str, used: re.Match[str], frame: re.Match[str] | None) -> KernelResources:
    shared = _SHARED.search(line)
    stack, stores, loads = (int(g) for g in frame.groups()) if frame else (None, None, None)
    return KernelResources(
        kernel=name,
        registers=int(used.group(1)),
        shared_bytes=int(shared.group(1)) if shared else 0,
        spill_store_bytes=stores,
        spill_load_bytes=loads,
        stack_bytes=stack,
    )


@lru_cache(maxsize=1)
def _nvcc() -> Tool:
    for path in filter(None, (find_program("nvcc"), *_WHERE)):
        toolkit = _toolkit_of(Path(path))
        if toolkit is not None:
            program = toolkit / "bin" / "nvcc"
            version = version_line(program, "release") or "nvcc of unknown version"
            return Tool(name="nvcc", program=program, version=version, toolkit=toolkit)
    raise ToolchainError(
        "nvcc was not found.",
        todo="Install the CUDA toolkit (13.0 or later for B200, 12.0 or later for H100) and put nvcc on the PATH, "
        "or use the target cpu.",
    )


def _toolkit_of(nvcc: Path) -> Path | None:
    """The toolkit's root as nvcc itself sees it. What lies on the PATH may be a wrapper script or a link."""
    said = _ask(nvcc, "--dryrun", "-x", "cu", "-c", "/dev/null", "-o", "/dev/null")
    top = re.search(r"^#\$ TOP=(.+)$", said, re.MULTILINE)
    if top is None:
        return None
    root = Path(top.group(1).strip()).resolve()
    return root if (root / "bin" / "nvcc").is_file() else None


@lru_cache(maxsize=4)
def _architectures(nvcc: Path) -> tuple[str, ...]:
    """Architectures that nvcc builds for, the architecture-specific ones included; empty when it does not say."""
    plain = re.findall(r"^sm_\d+$", _ask(nvcc, "--list-gpu-code"), re.MULTILINE)
    specific = [f"{name}{letter}" for name in plain if int(name[3:]) >= 90 for letter in ("a", "f")]
    return tuple(name for name in (*plain, *specific) if name != "sm_90f")


def _ask(program: Path, *args: str) -> str:
    try:
        done = subprocess.run(
            [program, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


NVCC = Compiler(name="nvcc", serves=lambda target: not is_cpu(target), find=find, command=command, kernels=kernels)
