"""The source page that Nsight Compute prints in CSV, in its two views. Pure.

By machine instruction: per launch one table, which begins with the kernel's name on a line of its own; then come a header
row and one row per instruction. By source line: per launch and file one table, in which the row of a line (with its number)
is followed by the rows of its instructions (without).
"""

import csv
from collections.abc import Iterator, Mapping, Sequence

from hiera_mcp.sandbox.profiling.numbers import number
from hiera_mcp.sandbox.profiling.raw import Instruction

COUNTS = {
    "Instructions Executed": "executed",
    "Predicated-On Thread Instructions Executed": "threads",
    "L2 Theoretical Sectors Global": "sectors",
    "L2 Theoretical Sectors Global Ideal": "sectors_ideal",
    "L1 Wavefronts Shared": "wavefronts",
    "L1 Wavefronts Shared Ideal": "wavefronts_ideal",
}
"""Column → our name, as in child/ncu_reader.py."""
STALLS = {
    "stall_barrier": "barrier",
    "stall_branch_resolving": "branch_resolving",
    "stall_dispatch": "dispatch_stall",
    "stall_drain": "drain",
    "stall_gmma": "gmma",
    "stall_imc": "imc_miss",
    "stall_lg": "lg_throttle",
    "stall_long_sb": "long_scoreboard",
    "stall_math": "math_pipe_throttle",
    "stall_membar": "membar",
    "stall_mio": "mio_throttle",
    "stall_misc": "misc",
    "stall_no_inst": "no_instructions",
    "stall_not_selected": "not_selected",
    "stall_selected": "selected",
    "stall_short_sb": "short_scoreboard",
    "stall_sleep": "sleeping",
    "stall_tex": "tex_throttle",
    "stall_wait": "wait",
}
"""Column → the sampler's reason."""


Place = tuple[str, int]
"""File and line."""


def instructions(text: str, place_of: Mapping[int, Place]) -> tuple[tuple[Instruction, ...], ...]:
    """The instructions of each launch, in the order of the launches, from the view by instruction.

    Args:
        place_of: address → place, from the other view.
    """
    return tuple(tuple(_instructions(rows, place_of)) for rows in _tables(text))


def places(text: str) -> dict[int, Place]:
    """Address of an instruction → its place, from the view by source line. Of one that was inlined from another file it is
    the place of the call, whose file comes first."""
    found: dict[int, Place] = {}
    file, line = "", 0
    for row in csv.reader(text.splitlines()):
        if row[:1] == ["File Path"]:
            file, line = "".join(row[1:2]), 0
        elif len(row) > 2 and row[0].isdecimal():
            line = int(row[0])
        elif len(row) > 2 and row[0] == "" and (address := _hexadecimal(row[2])) is not None:
            found.setdefault(address, (file, line))
    return found


def _tables(text: str) -> Iterator[list[list[str]]]:
    table: list[list[str]] | None = None
    for row in csv.reader(text.splitlines()):
        if row[:1] == ["Kernel Name"]:
            if table is not None:
                yield table
            table = []
        elif table is not None and len(row) > 2:
            table.append(row)
    if table is not None:
        yield table


def _instructions(rows: Sequence[Sequence[str]], place_of: Mapping[int, Place]) -> Iterator[Instruction]:
    if not rows:
        return
    named = [dict(zip(rows[0], row, strict=False)) for row in rows[1:]]
    placed = [(address, cells) for cells in named if (address := _hexadecimal(cells.get("Address", ""))) is not None]
    first = min((address for address, _ in placed), default=0)
    for address, cells in placed:
        if _is_padding(cells):
            continue
        file, line = place_of.get(address, ("", 0))
        yield Instruction(
            offset=address - first,
            sass=cells.get("Source", "").strip(),
            file=file,
            line=line,
            counts=_known(cells, COUNTS),
            stalls={name: n for name, n in _known(cells, STALLS).items() if n},
        )


def _is_padding(cells: Mapping[str, str]) -> bool:
    return cells.get("Source", "").strip() == "NOP" and not number(cells.get("Instructions Executed", ""))


def _hexadecimal(text: str) -> int | None:
    try:
        return int(text, 16)
    except ValueError:
        return None


def _known(cells: Mapping[str, str], names: Mapping[str, str]) -> dict[str, float]:
    return {ours: value for theirs, ours in names.items() if (value := number(cells.get(theirs, ""))) is not None}
