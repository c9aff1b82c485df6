"""Inputs on `cpu`: each draw reaches the runner with the request that works on it, and no moment earlier.

The runner keeps nothing but room for them in its address space. The values lie in a memfd that was made for this one draw;
its descriptor rides on the request, and the runner maps it in the room, at the address that the candidate knows. So
nothing can be computed ahead of a call, and the cache can be emptied between the writing and the call.
"""

import os
from collections.abc import Iterable, Sequence
from typing import Any

from hiera_mcp.sandbox.child.buffers import Handle, MemfdBlock, Spec, spec_bytes, view_of
from hiera_mcp.sandbox.child.layout import PAGE, Layout, lay_out

Place = tuple[int, int, int]
"""Offset in the room, bytes, and the descriptor of the memory that belongs there."""


class FreshInputs:
    """Room for the inputs of all cases and sets, and the values of each set's last draw.

    Args:
        specs: all tensors, in order.
    """

    def __init__(self, specs: Sequence[Spec]) -> None:
        self.specs = tuple(specs)
        self.layout: Layout = lay_out([spec_bytes(s) for s in specs])
        self.handle = Handle(self.layout.total, False, -1)
        self.views: list[Any] = [None] * len(specs)
        self._blocks: dict[int, MemfdBlock] = {}
        self._due: set[int] = set()
        self._old: list[MemfdBlock] = []
        """Still mapped by the runner. Whoever lets go last has to free the pages, and that takes time: not the runner, whose
        answer is timed."""

    def fill(self, numbers: range, values: Sequence[Any]) -> None:
        """Lay out new values for the tensors with these numbers, which are one set's."""
        if not len(numbers):
            return
        start, size = self._span(numbers)
        block = MemfdBlock(size, writable=False)
        for number, value in zip(numbers, values, strict=True):
            offset = self.layout.offsets[number] - start
            self.views[number] = view_of(block.raw, offset, self.specs[number])
            self.views[number].copy_(value)
        if numbers.start in self._blocks:
            self._old.append(self._blocks[numbers.start])
        self._blocks[numbers.start] = block
        self._due.add(numbers.start)

    def due(self, numbers: range) -> Place | None:
        """What has to go out with the next request on this set; None when the runner has it already."""
        if numbers.start not in self._due:
            return None
        start, size = self._span(numbers)
        return start, size, self._blocks[numbers.start].fd

    def gone_out(self, offsets: Iterable[int]) -> None:
        """The runner has what belongs at these offsets: the descriptors are closed here, the mappings stay."""
        starts = set(offsets)
        for number in [n for n in self._due if self.layout.offsets[n] in starts]:
            self._due.discard(number)
            self._blocks[number].close_descriptor()
        self._forget()

    def damaged_guards(self) -> list[str]:
        """None: the memory is sealed against writing."""
        return []

    def free(self) -> None:
        self.views = []
        self._forget()
        for block in self._blocks.values():
            block.free()
        self._blocks.clear()

    def _forget(self) -> None:
        for block in self._old:
            block.free()
        self._old.clear()

    def _span(self, numbers: range) -> tuple[int, int]:
        """Offset and bytes of whole pages around a set's tensors."""
        start, last = self.layout.offsets[numbers[0]], numbers[-1]
        stop = self.layout.offsets[last] + self.layout.sizes[last]
        return start, max(PAGE, -(-(stop - start) // PAGE) * PAGE)


def scratch(size: int) -> int:
    """A descriptor of sealed memory of `size` bytes that holds something, to rehearse a hand-over with; the caller closes it."""
    block = MemfdBlock(max(PAGE, size), writable=False)
    block.raw.fill_(1)
    fd = os.dup(block.fd)
    block.free()
    return fd
