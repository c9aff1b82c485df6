"""What this host offers: isolation, compilers, GPUs, and what to install for the rest."""

import asyncio
import importlib.metadata
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from hiera_mcp.model.space import Target, architecture, is_cpu
from hiera_mcp.model.work import DoctorReport, IsolationReport, TargetReport
from hiera_mcp.sandbox.devices import VISIBLE, GpuDevice, device_for, gpus, unlisted_gpus
from hiera_mcp.sandbox.isolation import probe
from hiera_mcp.sandbox.isolation.binds import find_tool
from hiera_mcp.sandbox.isolation.box import Isolation

TOOLS = {
    "g++": "missing: install it, for example `apt install g++`",
    "nvcc": "missing: install the CUDA toolkit (only for targets cuda:*)",
    "bwrap": "missing: install it, for example `apt install bubblewrap`",
    "ncu": "missing: install Nsight Compute (only for hardware counters)",
    "compute-sanitizer": "missing: comes with the CUDA toolkit (only for memory errors and races of targets cuda:*)",
    "cuobjdump": "missing: comes with the CUDA toolkit (only for the instruction mix of targets cuda:*)",
}
"""Program → what to say where it is missing."""

DISTRIBUTIONS = {
    "torch": (("torch",), "missing: install torch; references cannot be run without it"),
    "cupy": (("cupy-cuda13x", "cupy-cuda12x", "cupy"), "missing: install the extra cuda12 or cuda13 (only with a GPU)"),
}
"""Library → the distributions that bring it, and what to say where it is missing."""

TARGETS: tuple[Target, ...] = ("cpu", "cuda:sm_80", "cuda:sm_90a")
"""Targets that are reported on even where no GPU is."""

MISSING = "missing"
NVIDIA_SMI = (
    "Put the driver's nvidia-smi on the PATH (in a container: the driver capability `utility`) and see what it says."
)
VERSION_S = 20.0


async def report(chosen: Isolation | None, thorough: bool) -> DoctorReport:
    """Look at this host. `thorough` also tries every isolation backend, and boxes with a GPU, not the chosen one alone."""
    present = gpus()
    if thorough or chosen is None:
        isolation = await probe.report_all(present)
    else:
        isolation = (await probe.self_check(chosen),)
    names = await asyncio.gather(*(tool_version(name) for name in TOOLS))
    tools = {**dict(zip(TOOLS, names, strict=True)), **{name: library_version(name) for name in DISTRIBUTIONS}}
    architectures = await _architectures()
    return assemble(isolation, chosen.name if chosen else None, present, tools, architectures, unlisted_gpus())


def assemble(
    isolation: Sequence[IsolationReport],
    chosen: str | None,
    present: Sequence[GpuDevice],
    tools: Mapping[str, str],
    architectures: Sequence[str],
    unlisted: Sequence[str] = (),
) -> DoctorReport:
    """The report from what was seen.

    Args:
        architectures: what the installed nvcc can build for, as `sm_80`.
        unlisted: GPUs that nvidia-smi does not list.
    """
    targets = tuple(dict.fromkeys((*(g.target for g in present), *TARGETS)))  # a GPU's own target before older ones
    reports = tuple(target_report(t, chosen, present, tools, architectures) for t in targets)
    return DoctorReport(
        isolation=tuple(isolation),
        chosen=chosen,
        targets=reports,
        gpus=tuple(_gpu_line(g) for g in present),
        tools=dict(tools),
        advice=advice(chosen, present, tools, unlisted),
    )


def target_report(
    target: Target,
    chosen: str | None,
    present: Sequence[GpuDevice],
    tools: Mapping[str, str],
    architectures: Sequence[str],
) -> TargetReport:
    """Whether `target` can be compiled and run here, and if not, why."""
    compiler = "g++" if is_cpu(target) else "nvcc"
    why: list[str] = []
    if tools[compiler].startswith(MISSING):
        why.append(f"{compiler} is {tools[compiler]}")
    elif not is_cpu(target) and architecture(target) not in architectures:
        why.append(f"this nvcc cannot build for {architecture(target)}: it knows {', '.join(architectures)}")
    compiles = not why
    if tools["torch"].startswith(MISSING):
        why.append(f"torch is {tools['torch']}")
    device = device_for(target, "auto", present)
    if device is None:
        why.append(f"no GPU that runs {target}; candidates are compiled and checked only")
    if chosen is None:
        why.append("no isolation backend works, see isolation")
    return TargetReport(
        target=target,
        compiles=compiles and chosen is not None,
        runs=not why,
        reason="; ".join(why),
    )


def advice(
    chosen: str | None, present: Sequence[GpuDevice], tools: Mapping[str, str], unlisted: Sequence[str] = ()
) -> tuple[str, ...]:
    """What to do on this host, the most important first."""
    lines: list[str] = []
    if chosen is None:
        lines.append(f"Nothing untrusted is run here. bwrap: {tools['bwrap']}. See `reason` of each isolation backend.")
    elif chosen != "bubblewrap":
        lines.append(f"Isolation by {chosen}; bubblewrap isolates more. bwrap: {tools['bwrap']}.")
    wanted = ("g++", "torch", *(("nvcc", "ncu", "compute-sanitizer", "cuobjdump", "cupy") if present else ()))
    lines.extend(f"{name} is {tools[name]}." for name in wanted if tools[name].startswith(MISSING))
    if unlisted:
        lines.append(
            f"{', '.join(unlisted)}: not used, because nvidia-smi does not list it or {VISIBLE} leaves it out. {NVIDIA_SMI}"
        )
    elif not present:
        lines.append("No GPU is visible: target `cpu` runs; CUDA candidates are compiled and checked where nvcc is.")
    return tuple(lines)


async def tool_version(name: str) -> str:
    """The version of a program, by its own word; what to install when it is missing."""
    path = find_tool(name) or _in_toolkit(name)
    if path is None:
        return TOOLS[name]
    try:
        said = await _output(str(path), "--version")
    except OSError as e:
        return f"{MISSING}: {path} cannot be executed ({e.strerror}){TOOLS[name].removeprefix(MISSING)}"
    version = parse_version(said)
    return f"{version} ({path})" if version else f"of unknown version ({path})"


def parse_version(text: str) -> str:
    """The first version number in what `--version` prints; nvcc and its tools call theirs `release 13.0, V13.0.88`."""
    m = re.search(r"\bV(\d+(?:\.\d+)+)", text) or re.search(r"\b(\d+(?:\.\d+)+)", text)
    return m[1] if m else ""


def library_version(name: str) -> str:
    """The version of a Python library, without importing it."""
    distributions, missing = DISTRIBUTIONS[name]
    for distribution in distributions:
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    return missing


async def _architectures() -> tuple[str, ...]:
    nvcc = find_tool("nvcc")
    if nvcc is None:
        return ()
    try:
        plain = re.findall(r"\bsm_\d+\w?", await _output(str(nvcc), "--list-gpu-code"))
    except OSError:
        return ()
    specific = [f"{name}{suffix}" for name in plain for suffix in "af" if name[-1].isdigit() and _number(name) >= 90]
    return tuple(dict.fromkeys((*plain, *specific)))


def _number(arch: str) -> int:
    return int(re.sub(r"\D", "", arch))


def _in_toolkit(name: str) -> Path | None:
    nvcc = find_tool("nvcc")
    found = shutil.which(name, path=str(nvcc.resolve().parent)) if nvcc else None
    return Path(found) if found else None


async def _output(*argv: str) -> str:
    """stdout and stderr of a short command of the host; empty when it does not end.

    Raises:
        OSError: it cannot be executed.
    """
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), VERSION_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        return ""
    return said.decode(errors="replace")


def _gpu_line(gpu: GpuDevice) -> str:
    major, minor = gpu.compute_capability
    return f"{gpu.device}: {gpu.name}, compute capability {major}.{minor}, {gpu.memory_mib} MiB, driver {gpu.driver}"
