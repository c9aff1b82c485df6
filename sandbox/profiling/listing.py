"""The machine code of profiled launches as text, with what was seen at each instruction. Pure.

Made to be searched: an instruction names its source line as `file:line`, so that a line's code is found by that text.
"""

from collections.abc import Iterator, Sequence

from hiera_mcp.sandbox.profiling.lines import NO_STALL, reasons
from hiera_mcp.sandbox.profiling.raw import Instruction, RawLaunch

HEAD = "offset  samples  stall              executed  line                      instruction"
MOST_INSTRUCTIONS = 20_000


def listing(launches: Sequence[RawLaunch]) -> str:
    """All launches one after another; a kernel that was launched again has its own samples there."""
    return "\n".join(line for launch in launches for line in _launch(launch))


def _launch(launch: RawLaunch) -> Iterator[str]:
    yield f"==== {launch.kernel}"
    yield HEAD
    yield from (_line(i) for i in launch.instructions[:MOST_INSTRUCTIONS])
    left = len(launch.instructions) - MOST_INSTRUCTIONS
    if left > 0:
        yield f"… {left} instructions more"


def _line(found: Instruction) -> str:
    waits = [(name, n) for name, n in reasons([found]).most_common() if name != NO_STALL]
    stall = waits[0][0] if waits else ""
    place = f"{found.file.rpartition('/')[2]}:{found.line}" if found.line else ""
    executed = f"{found.counts['executed']:.0f}" if "executed" in found.counts else ""
    return f"{found.offset:06x}  {found.samples:7.0f}  {stall:<17}  {executed:>8}  {place:<24}  {found.sass}".rstrip()
