"""What each child program runs in: builders of BoxSpec, pure but for looking where Python and the toolkits are."""

import os
import sys
from dataclasses import replace
from pathlib import Path

from hiera_mcp.errors import ToolchainError
from hiera_mcp.model.sanitizer import SanitizerTool
from hiera_mcp.model.space import Target
from hiera_mcp.model.work import Limits
from hiera_mcp.sandbox.compilers.build import find_tool
from hiera_mcp.sandbox.devices import VISIBLE, GpuDevice, gpu_named
from hiera_mcp.sandbox.isolation.binds import child_binds, child_env, python_binds, toolkit_binds
from hiera_mcp.sandbox.isolation.box import BOX, Bind, BoxLimits, BoxSpec
from hiera_mcp.sandbox.libraries import runtime_binds
from hiera_mcp.sandbox.profiling import compute_sanitizer, nsight

NCU_REPORT, NCU_LOG = "profile.ncu-rep", "ncu.log"
CHECKER_LOG = "sanitizer.log"
CACHES = (
    "XDG_CACHE_HOME",
    "TORCH_EXTENSIONS_DIR",
    "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "CUDA_CACHE_PATH",
    "CUPY_CACHE_DIR",
)


def tracer(work: Path, fd: int) -> BoxSpec:
    """The tracer: runs one reference after another, each in a process of its own."""
    return BoxSpec(
        argv=child_argv("tracer", "--fd", str(fd), "--watch", "/dev/shm"),
        work=work,
        limits=BoxLimits(memory_bytes=host_memory() // 2, processes=256),
        binds=_python(),
        env=environment(),
        fds=(fd,),
    )


def host_rates(work: Path) -> BoxSpec:
    """The measurement of this host's processor: writes /box/result.json. Trusted code of ours, boxed as all else is."""
    return BoxSpec(
        argv=child_argv("host_rates", "--result", f"{BOX}/result.json"),
        work=work,
        limits=BoxLimits(memory_bytes=host_memory() // 4, processes=256),
        binds=_python(),
        env=environment(),
    )


def judge(work: Path, fd: int, device: str) -> BoxSpec:
    """The judge: trusted code of ours around the user's reference, which is not; so it is boxed as well.

    It lives for many evaluations and holds the oracle in float64, hence the generous limits.
    """
    gpu = gpu_named(device)
    return BoxSpec(
        argv=child_argv("judge", "--fd", str(fd), "--device", seen(device)),
        work=work,
        limits=BoxLimits(memory_bytes=host_memory() * 3 // 4, processes=512, output_bytes=256 << 20),
        binds=_python(),
        env=environment() | visible(gpu),
        fds=(fd,),
        gpu=gpu,
    )


def runner(work: Path, fd: int, device: str, limits: Limits, also: tuple[Bind, ...] = ()) -> BoxSpec:
    """The runner: loads the built candidate from /box, which it cannot change.

    Args:
        also: what this candidate needs besides, see `candidate_binds`.
    """
    gpu = gpu_named(device)
    return BoxSpec(
        argv=child_argv("runner", "--fd", str(fd), "--device", seen(device), "--box", BOX),
        work=work,
        limits=BoxLimits(
            memory_bytes=limits.memory_bytes,
            disk_bytes=limits.disk_bytes,
            processes=limits.processes,
            output_bytes=limits.output_bytes,
        ),
        writable=False,
        binds=(*_python(), *also),
        env=environment() | visible(gpu),
        fds=(fd,),
        gpu=gpu,
    )


def profiler(runner: BoxSpec, ncu: Path, major: int | None = None) -> BoxSpec:
    """The same runner as a child of Nsight Compute, which leaves its report in /box.

    Its lock file and its sockets lie in the box's own /tmp; the device's lock keeps runs apart.
    """
    return replace(
        runner,
        argv=nsight.record_command(ncu, runner.argv, f"{BOX}/{NCU_REPORT}", f"{BOX}/{NCU_LOG}", major),
        writable=True,
        binds=(*runner.binds, *nsight.binds(ncu)),
        profiler=True,
    )


def sanitizer(runner: BoxSpec, program: Path, tool: SanitizerTool) -> BoxSpec:
    """The same runner as a child of compute-sanitizer, on buffers of its own, with a log in /box.

    Torch asks CUDA for each tensor by itself then, so that an access that runs past one is seen.
    """
    return replace(
        runner,
        argv=compute_sanitizer.command(program, tool, (*runner.argv, "--private"), f"{BOX}/{CHECKER_LOG}"),
        writable=True,
        binds=(*runner.binds, *compute_sanitizer.binds(program)),
        env={**runner.env, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
        profiler=True,
    )


def candidate_binds(target: Target, builds_extension: bool) -> tuple[Bind, ...]:
    """The libraries that a candidate may be linked with, wherever this host has them, under the paths that its rpath
    names; and the compilers for a ModelNew that builds an extension itself."""
    libraries = runtime_binds(target, _toolkit_root(target))
    return tuple(dict.fromkeys((*libraries, *(toolkit_binds() if builds_extension else ()))))


def child_argv(name: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-P", "-m", f"hiera_mcp.sandbox.child.{name}", *arguments)


def environment() -> dict[str, str]:
    """Every cache is private to the box: a shared one would be a channel from one candidate to the next."""
    return {**child_env(), **{name: f"/tmp/cache/{name.lower()}" for name in CACHES}}


def _toolkit_root(target: Target) -> Path | None:
    try:
        return find_tool(target).toolkit
    except ToolchainError:
        return None  # a ModelNew alone needs no compiler


def _python() -> tuple[Bind, ...]:
    return (*python_binds(), *child_binds())


def visible(gpu: GpuDevice | None) -> dict[str, str]:
    """Lets CUDA see this GPU alone, also where a backend cannot hide the others."""
    return {VISIBLE: gpu.uuid} if gpu is not None and gpu.uuid else {}


def seen(device: str) -> str:
    """What a device of this host is called in a box, which sees one GPU at most."""
    return device if device == "cpu" else "cuda:0"


def host_memory() -> int:
    """Bytes of physical memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
