"""Find the source lines of sampled addresses in a built candidate, with the binutils, in a box: what they parse is untrusted."""

import shutil
from collections.abc import Container
from dataclasses import dataclass, field
from pathlib import Path

from hiera_mcp.model.work import HostSamples
from hiera_mcp.sandbox.compilers.inspect import printed
from hiera_mcp.sandbox.isolation.box import BoxLimits
from hiera_mcp.sandbox.launcher.host import Host
from hiera_mcp.sandbox.profiling.host_code import Code, Place, code, places
from hiera_mcp.sandbox.profiling.host_lines import LIBRARY

MEMORY_BYTES = 4 << 30
_ADDRESSES = "addresses.txt"


@dataclass(frozen=True)
class Located:
    """The machine code in which something was sampled, and where it came from."""

    code: tuple[Code, ...] = ()
    places: dict[int, Place] = field(default_factory=dict[int, Place])
    reason: str = ""
    """Why nothing was found; empty when something was, or nothing had to be."""


async def locate(host: Host, built: Path, samples: HostSamples, own: Container[str]) -> Located:
    """What the samples' addresses stand for.

    Args:
        built: folder of the built candidate.
        own: names of the candidate's files.
    """
    if not samples.own:
        return Located()
    objdump, addr2line = shutil.which("objdump"), shutil.which("addr2line")
    if objdump is None or addr2line is None:
        return Located(reason="objdump and addr2line were not found: install binutils")
    arguments = ("-d", "-C", "--no-show-raw-insn", LIBRARY)
    found = code(await _printed(host, built, Path(objdump), arguments), dict(samples.own))
    arguments = ("-a", "-f", "-i", "-e", LIBRARY, f"@{_ADDRESSES}")
    told = await _printed(host, built, Path(addr2line), arguments, "\n".join(f"{c.address:#x}" for c in found))
    place_of = places(told, own)
    return Located(found, place_of, "" if place_of else "the binutils found no lines in the candidate's library")


async def _printed(host: Host, built: Path, program: Path, arguments: tuple[str, ...], addresses: str = "") -> str:
    with host.work.folder("lines") as work:
        shutil.copyfile(built / LIBRARY, work / LIBRARY)
        (work / _ADDRESSES).write_text(addresses)
        return await printed(host.isolation, program, arguments, work, BoxLimits(memory_bytes=MEMORY_BYTES))
