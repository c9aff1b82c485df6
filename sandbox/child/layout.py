"""Where the tensors of one shared block lie: each page-aligned, with a guard zone before and after it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

PAGE = 4096
"""Alignment of every tensor, in bytes; enough for huge vector loads and for TMA."""
GUARD = 64 << 10
"""Least size of a guard zone, in bytes."""


@dataclass(frozen=True)
class Layout:
    """Offsets in bytes from the start of the block."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    gaps: tuple[tuple[int, int], ...]
    """Guard zones as (start, stop); gap i lies before tensor i, the last one after the last tensor."""
    total: int


def lay_out(sizes: Sequence[int]) -> Layout:
    """Place tensors of `sizes` bytes one after another.

    A guard zone starts at the byte after a tensor's last, so that a write of one element too many is seen.
    """
    offsets: list[int] = []
    gaps: list[tuple[int, int]] = []
    end = 0
    for size in sizes:
        start = _round_up(end + GUARD)
        gaps.append((end, start))
        offsets.append(start)
        end = start + size
    total = _round_up(end + GUARD)
    return Layout(tuple(offsets), tuple(sizes), (*gaps, (end, total)), total)


def _round_up(n: int) -> int:
    return -(-n // PAGE) * PAGE
