"""Look into a built candidate with the toolkit's own tools, inside a box: what they parse is untrusted too."""

import shutil
import sysconfig
from dataclasses import replace
from pathlib import Path

from hiera_mcp.model.evaluation import KernelResources
from hiera_mcp.model.space import Target, architecture, is_cpu
from hiera_mcp.sandbox.compilers.base import Job, Tool
from hiera_mcp.sandbox.compilers.cache import read_artefact
from hiera_mcp.sandbox.compilers.instructions import host_mix, sass_mix
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


def disassembler(target: Target, toolkit: Path | None) -> Path | None:
    """objdump, or cuobjdump with nvdisasm beside it: from the toolkit, the PATH, or a wheel."""
    if is_cpu(target):
        path = shutil.which("objdump")
        return Path(path) if path else None
    site = Path(sysconfig.get_paths()["purelib"])
    found = shutil.which("cuobjdump")
    candidates = [
        *([toolkit / "bin" / "cuobjdump"] if toolkit else []),
        *([Path(found).resolve()] if found else []),
        *sorted(site.glob("nvidia/*/bin/cuobjdump")),
    ]
    return next((c for c in candidates if c.is_file() and (c.parent / "nvdisasm").is_file()), None)


async def instruction_mix(isolation: Isolation, tool: Tool, job: Job, work: Path, limits: BoxLimits) -> dict[str, int]:
    """Classes of the instructions of one built case; empty when the tool is missing or gives up."""
    program = disassembler(job.target, tool.toolkit)
    if program is None:
        return {}
    spec = BoxSpec(
        argv=("/bin/sh", "-c", f'"$@" >{_LISTING}', "sh", str(program), *_arguments(job)),
        work=work,
        limits=replace(limits, file_bytes=_MOST_LISTING_BYTES),
        binds=outside_usr(program.parent),
        env={"PATH": f"{program.parent}:/usr/bin:/bin"},
    )
    outcome = await run(isolation, spec, _SECONDS)
    listing = read_artefact(work / _LISTING, _MOST_LISTING_BYTES)
    if outcome.ended != "exit" or outcome.code != 0 or listing is None:
        return {}
    text = listing.decode(errors="replace")
    return host_mix(text) if is_cpu(job.target) else sass_mix(text)


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


def _arguments(job: Job) -> tuple[str, ...]:
    if is_cpu(job.target):
        return ("-d", "--no-show-raw-insn", "--section=.text", job.output)
    return ("-sass", "-arch", architecture(job.target), job.output)
