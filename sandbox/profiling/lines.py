"""Which lines of a candidate's source cost it: the samples of its machine instructions, added up. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import PurePosixPath

from hiera_mcp.model.profile import SourceLine
from hiera_mcp.sandbox.profiling.metrics import SAME_REASON
from hiera_mcp.sandbox.profiling.raw import Instruction

MOST_LINES = 12
NO_STALL = "selected"
"""The sampler's word for a warp that issued."""


def source_lines(found: Sequence[Instruction], sources: Mapping[str, str]) -> tuple[SourceLine, ...]:
    """The lines with the most samples, at most `MOST_LINES`; empty when the binary names no lines or nothing was sampled.

    Args:
        sources: the candidate's files by name, for the text of its lines.
    """
    total = sum(i.samples for i in found)
    if not total:
        return ()
    placed = sorted((i for i in found if i.line), key=_place)
    lines = [_line(place, list(group), total, sources) for place, group in groupby(placed, key=_place)]
    return tuple(sorted((line for line in lines if line.samples), key=lambda line: -line.samples)[:MOST_LINES])


def reasons(found: Sequence[Instruction]) -> Counter[str]:
    """Stall reason → samples of these instructions, under the names of the section."""
    counted: Counter[str] = Counter()
    for instruction in found:
        for reason, samples in instruction.stalls.items():
            counted[SAME_REASON.get(reason, reason)] += round(samples)
    return counted


def _place(instruction: Instruction) -> tuple[str, int]:
    return PurePosixPath(instruction.file).name, instruction.line


def _line(place: tuple[str, int], found: list[Instruction], total: float, sources: Mapping[str, str]) -> SourceLine:
    file, line = place
    counted = reasons(found)
    samples = sum(counted.values())
    waiting = counted.most_common()
    stall = next((name for name, _ in waiting if name != NO_STALL), "")
    return SourceLine(
        file=file,
        line=line,
        text=_text(sources.get(file, ""), line),
        samples=samples,
        share=round(samples / total, 4),
        stall=stall,
        stall_share=round(counted[stall] / samples, 4) if samples else 0.0,
        instruction=max(found, key=lambda i: i.samples).sass,
        sectors_over_ideal=_excess(found),
    )


def _excess(found: list[Instruction]) -> float | None:
    ideal = sum(i.counts.get("sectors_ideal", 0.0) for i in found)
    return round(sum(i.counts.get("sectors", 0.0) for i in found) / ideal, 2) if ideal else None


def _text(source: str, line: int) -> str:
    lines = source.splitlines()
    return lines[line - 1].strip()[:120] if 0 < line <= len(lines) else ""
