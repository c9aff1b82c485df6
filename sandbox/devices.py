"""What this host can compile for and run on, found out without importing torch or loading a driver."""

import functools
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hiera_mcp.errors import RequestError
from hiera_mcp.model.space import Target, architecture, is_cpu

QUERY = "index,name,compute_cap,memory.total,driver_version,uuid,pci.bus_id"
DRIVER = Path("/proc/driver/nvidia")
VISIBLE = "CUDA_VISIBLE_DEVICES"
SMI_S = 20.0
ARCH_SPECIFIC_SINCE = (9, 0)
"""From Hopper on, wgmma and the like exist only in the architecture-specific target, sm_90a (CUDA C++ Guide, 5.1)."""


@dataclass(frozen=True)
class GpuDevice:
    """One GPU of this host, as nvidia-smi lists it."""

    index: int
    name: str
    compute_capability: tuple[int, int]
    memory_mib: int
    driver: str
    uuid: str = ""
    """`GPU-…`: what names it to CUDA, whatever order the GPUs have there."""
    minor: int | None = None
    """Number of its node in /dev, where the driver tells it."""

    @property
    def node(self) -> str:
        return f"/dev/nvidia{self.index if self.minor is None else self.minor}"

    @property
    def device(self) -> str:
        return f"cuda:{self.index}"

    @property
    def target(self) -> Target:
        """The target that uses all of its instructions."""
        major, minor = self.compute_capability
        return f"cuda:sm_{major}{minor}" + ("a" if self.compute_capability >= ARCH_SPECIFIC_SINCE else "")


_LINE = re.compile(
    r"\s*(\d+), *(.+?), *(\d+)\.(\d+), *(\d+|\[N/A\]), *([^,]*?), *(GPU-[\w-]+|\[N/A\]), *([\da-fA-F:.]+|\[N/A\])\s*"
)


def parse_gpus(text: str, driver: Path = DRIVER) -> tuple[GpuDevice, ...]:
    """GPUs from nvidia-smi's CSV for `QUERY` (noheader, nounits); lines that do not fit are left out."""
    return tuple(_gpu(*m.groups(), folder=driver) for m in map(_LINE.fullmatch, text.splitlines()) if m)


def _gpu(
    index: str, name: str, major: str, minor: str, memory: str, version: str, uuid: str, bus: str, folder: Path
) -> GpuDevice:
    mib = int(memory) if memory.isdigit() else 0
    named = uuid if uuid.startswith("GPU-") else ""
    return GpuDevice(int(index), name, (int(major), int(minor)), mib, version, named, _node_number(bus, folder))


def _node_number(bus: str, driver: Path) -> int | None:
    """N of /dev/nvidiaN by the driver's own account: it need not be the number that nvidia-smi gives the GPU."""
    domain, _, rest = bus.lower().partition(":")
    try:
        text = (driver / "gpus" / f"{domain[-4:]}:{rest}" / "information").read_text(errors="replace")
    except OSError:
        return None
    m = re.search(r"^Device Minor:\s*(\d+)\s*$", text, re.MULTILINE)
    return int(m[1]) if m else None


def visible_gpus(present: Sequence[GpuDevice], names: str | None) -> tuple[GpuDevice, ...]:
    """Those that CUDA_VISIBLE_DEVICES leaves, under the indices that nvidia-smi gives them.

    Args:
        names: the variable's value: indices, or beginnings of UUIDs; the first that fits no GPU ends the list, as for
            CUDA programs (CUDA C++ Guide, environment variables). None: not set, all are visible.
    """
    if names is None:
        return tuple(present)
    found: list[GpuDevice] = []
    for name in names.split(","):
        gpu = next((g for g in present if _is_named(g, name.strip())), None)
        if gpu is None:
            break
        found.append(gpu)
    return tuple(sorted(dict.fromkeys(found), key=lambda g: g.index))


def _is_named(gpu: GpuDevice, name: str) -> bool:
    return name == str(gpu.index) or (name.startswith("GPU-") and gpu.uuid.startswith(name))


@functools.cache
def gpus() -> tuple[GpuDevice, ...]:
    """The GPUs of this host that CUDA_VISIBLE_DEVICES leaves. Asked once: nvidia-smi takes up to seconds, and GPUs do not
    come and go."""
    smi = shutil.which("nvidia-smi")
    if smi is None or not DRIVER.exists():
        return ()
    command = [smi, f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=SMI_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    present = parse_gpus(done.stdout) if done.returncode == 0 else ()
    return visible_gpus(present, os.environ.get(VISIBLE))


def unlisted_gpus(driver: Path = DRIVER) -> tuple[str, ...]:
    """Models of the GPUs that the driver knows, where `gpus` finds none: nothing can be run on them then."""
    if gpus():
        return ()
    found: list[str] = []
    for path in sorted(driver.glob("gpus/*/information")):
        m = re.search(r"^Model:\s*(\S.*?)\s*$", path.read_text(errors="replace"), re.MULTILINE)
        found.append(m[1] if m else "unknown model")
    return tuple(found)


def best_target(present: Sequence[GpuDevice] | None = None) -> Target:
    """The target of this host's first GPU; `cpu` where there is none."""
    present = gpus() if present is None else present
    return present[0].target if present else "cpu"


def device_for(target: Target, device: str = "auto", present: Sequence[GpuDevice] | None = None) -> str | None:
    """The device that can run `target`: `cpu`, `cuda:N`, or None when this host has none.

    `auto` takes the GPU of the target's own architecture, else a newer one that can run it (see `runs_on`).

    Raises:
        RequestError: `device` is not one of this host's devices for this target.
    """
    present = gpus() if present is None else present
    able = ("cpu",) if is_cpu(target) else tuple(g.device for g in sorted(present, key=_distance) if runs_on(target, g))
    if device == "auto":
        return _nearest(target, present) if not is_cpu(target) else "cpu"
    if device not in able:
        raise RequestError(
            f"Target {target} cannot run on device `{device}`.",
            todo="Ask for `auto`, or for a device of this host.",
            valid=("auto", *able),
        )
    return device


def runs_on(target: Target, gpu: GpuDevice) -> bool:
    """Whether code for `target` runs on `gpu`.

    Plain targets run on their own and all newer GPUs, on newer generations through their PTX. Targets ending in `a` run
    on their own compute capability only, those in `f` on their own generation (CUDA C++ Guide, 5.1, feature sets).
    """
    wanted, suffix = capability(target)
    have = gpu.compute_capability
    if suffix == "a":
        return have == wanted
    if suffix == "f":
        return have[0] == wanted[0] and have >= wanted
    return have >= wanted


def capability(target: Target) -> tuple[tuple[int, int], str]:
    """((9, 0), "a") of `cuda:sm_90a`."""
    m = re.fullmatch(r"sm_(\d+)(\d)([af]?)", architecture(target))
    if m is None:
        raise RequestError(f"`{target}` is not a CUDA target.", valid=("cuda:sm_80", "cuda:sm_90a"))
    return (int(m[1]), int(m[2])), m[3]


def device_note(target: Target, gpu: GpuDevice) -> str:
    """What a reader must know when a target runs on a GPU of another architecture; empty when it is its own."""
    wanted, _ = capability(target)
    if wanted == gpu.compute_capability:
        return ""
    how = "its binary" if wanted[0] == gpu.compute_capability[0] else "PTX, compiled by the driver"
    return f"code for {target} ran on {gpu.name} through {how}; times say little about the target's own GPU"


def gpu_named(device: str, present: Sequence[GpuDevice] | None = None) -> GpuDevice | None:
    """The GPU behind `cuda:N`; None for `cpu`."""
    present = gpus() if present is None else present
    return next((g for g in present if g.device == device), None)


def _nearest(target: Target, present: Sequence[GpuDevice]) -> str | None:
    able = [g for g in present if runs_on(target, g)]
    return min(able, key=_distance).device if able else None


def _distance(gpu: GpuDevice) -> tuple[tuple[int, int], int]:
    """The oldest GPU that can run a target is the nearest to it."""
    return gpu.compute_capability, gpu.index


@functools.cache
def cpu_name() -> str:
    """The processor's model name, from /proc/cpuinfo."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    return parse_cpu_name(text) or platform.processor() or platform.machine()


def parse_cpu_name(text: str) -> str:
    """`model name` on x86; on ARM there are only numbers, so the empty string."""
    m = re.search(r"^(?:model name|Model|cpu model)\s*:\s*(\S.*?)\s*$", text, re.MULTILINE)
    return m[1] if m else ""


def host_name() -> str:
    """Kernel and number of processors that may be used, for Device.host."""
    return f"{platform.system()} {platform.release()}, {processors()} processors"


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))
