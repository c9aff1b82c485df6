"""Look into a built candidate with the toolkit's own tools, inside a box: what they parse is untrusted too."""

import shutil
import sysconfig
from dataclasses import dataclass, replace
from pathlib import Path

from hiera_mcp.model.evaluation import KernelResources
from hiera_mcp.model.space import architecture, is_cpu
from hiera_mcp.sandbox.compilers.base import Job, Tool
from hiera_mcp.sandbox.compilers.cache import read_artefact
from hiera_mcp.sandbox.compilers.instructions import forbidden_instructions, host_mix, sass_mix
from hiera_mcp.sandbox.isolation.box import BoxLimits, BoxSpec, Isolation
from hiera_mcp.sandbox.isolation.process import run
from hiera_mcp.sandbox.libraries import outside_usr

NO_CUOBJDUMP = (
    "cuobjdump was not found, so there are no SASS counts: install the CUDA toolkit's cuobjdump and nvdisasm, or "
    "`pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm`"
)
NO_OBJDUMP = "objdump was not found, so there are no instruction counts: install binutils"

_LISTING = "listing.txt"
_MOST_LISTING_BYTES = 64 << 20
_SECONDS = 60.0
_MOST_NAMES = 200


def cuobjdump(toolkit: Path | None) -> Path | None:
    """cuobjdump with nvdisasm beside it, from the toolkit, the PATH, or a wheel."""
    site = Path(sysconfig.get_paths()["purelib"])
    found = shutil.which("cuobjdump")
    candidates = [
        *([toolkit / "bin" / "cuobjdump"] if toolkit else []),
        *([Path(found).resolve()] if found else []),
        *sorted(site.glob("nvidia/*/bin/cuobjdump")),
    ]
    return next((c for c in candidates if c.is_file() and (c.parent / "nvdisasm").is_file()), None)


@dataclass(frozen=True)
class Insight:
    """What disassembling one case shows."""

    mix: dict[str, int]
    """Classes of the instructions that do the work: SASS on CUDA, the processor's on cpu. Empty: no disassembler."""
    forbidden: tuple[str, ...]
    """Instructions of the host code that enter the kernel directly."""


NOTHING_SEEN = Insight({}, ())


async def look_into(isolation: Isolation, tool: Tool, jobs: tuple[Job, ...], work: Path, limits: BoxLimits) -> Insight:
    """Disassemble the built cases: the host code of all, the instruction mix of the first. What a tool that is missing
    or gives up would have shown stays empty."""
    listings = [await _host_listing(isolation, job, work, limits) for job in jobs]
    forbidden = tuple(dict.fromkeys(name for listing in listings for name in forbidden_instructions(listing)))
    if is_cpu(jobs[0].target):
        return Insight(host_mix(listings[0]), forbidden)
    return Insight(sass_mix(await _sass_listing(isolation, tool, jobs[0], work, limits)), forbidden)


async def _host_listing(isolation: Isolation, job: Job, work: Path, limits: BoxLimits) -> str:
    program = shutil.which("objdump")
    arguments = ("-d", "--no-show-raw-insn", job.output)
    return await printed(isolation, Path(program), arguments, work, limits) if program else ""


async def _sass_listing(isolation: Isolation, tool: Tool, job: Job, work: Path, limits: BoxLimits) -> str:
    program = cuobjdump(tool.toolkit)
    arguments = ("-sass", "-arch", architecture(job.target), job.output)
    return await printed(isolation, program, arguments, work, limits) if program else ""


async def printed(
    isolation: Isolation, program: Path, arguments: tuple[str, ...], work: Path, limits: BoxLimits
) -> str:
    """What a program prints, empty when it fails; a file carries it, because a box's output is cut."""
    spec = BoxSpec(
        argv=("/bin/sh", "-c", f'"$@" >{_LISTING}', "sh", str(program), *arguments),
        work=work,
        limits=replace(limits, file_bytes=_MOST_LISTING_BYTES),
        binds=outside_usr(program.parent),
        env={"PATH": f"{program.parent}:/usr/bin:/bin"},
    )
    outcome = await run(isolation, spec, _SECONDS)
    listing = read_artefact(work / _LISTING, _MOST_LISTING_BYTES)
    if outcome.ended != "exit" or outcome.code != 0 or listing is None:
        return ""
    return listing.decode(errors="replace")


async def demangle(
    isolation: Isolation, kernels: tuple[KernelResources, ...], work: Path, limits: BoxLimits
) -> tuple[KernelResources, ...]:
    """The same with readable names, where c++filt is there."""
    program = shutil.which("c++filt")
    if program is None or not kernels or len(kernels) > _MOST_NAMES:
        return kernels
    spec = BoxSpec(argv=(str(Path(program).resolve()), *(k.kernel for k in kernels)), work=work, limits=limits)
    outcome = await run(isolation, spec, _SECONDS)
    names = outcome.output.splitlines()
    if outcome.ended != "exit" or outcome.code != 0 or len(names) != len(kernels):
        return kernels
    return tuple(k.model_copy(update={"kernel": n}) for k, n in zip(kernels, names, strict=True) if n)
