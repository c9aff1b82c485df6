"""A float64 oracle on part of a batch, where the whole does not fit into memory.

That needs a reference that treats the samples of a batch independently. Whether it does is tried, not guessed: what it gives for
some samples alone has to be what it gives for them among all others, within the contract's tolerance. Which samples are looked at
is drawn anew for each trial.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hiera_mcp.sandbox.child.compare import expect
from hiera_mcp.sandbox.child.reference import Reference, ReferenceFailed

LARGEST_SHARE = 0.25
"""Of the batch; more is not worth the time."""


@dataclass(frozen=True)
class Rows:
    """Some samples of a batch, with the oracle's outputs for them."""

    start: int
    stop: int
    oracle: list[Any]


class SampledOracle:
    """Oracles on parts of the batches of one reference.

    Args:
        share: of a batch, how much fits into memory in float64.
    """

    def __init__(self, reference: Reference, share: float) -> None:
        self._reference = reference
        self._share = min(share, LARGEST_SHARE)
        self._batched: dict[int, tuple[int, ...] | None] = {}

    def rows(self, case: int, inputs: Sequence[Any], outputs: Sequence[Any]) -> Rows | None:
        """The oracle on a random part of the batch; None where the reference does not treat samples independently.

        Args:
            outputs: what the reference gives for the inputs.

        Raises:
            RuntimeError, TypeError, NotImplementedError: the reference does not run in float64, or memory is short.
        """
        batch = outputs[0].shape[0] if outputs[0].dim() else 0
        if batch < 2 or any(not t.dim() or t.shape[0] != batch for t in outputs):
            return None
        count = max(1, int(batch * self._share))
        start = random.SystemRandom().randrange(batch - count + 1)
        if case not in self._batched:
            self._batched[case] = self._find(case, inputs, outputs, (start, start + count))
        batched = self._batched[case]
        if batched is None:
            return None
        return Rows(
            start, start + count, self._reference.oracle_outputs(case, _cut(inputs, batched, (start, start + count)))
        )

    def _find(
        self, case: int, inputs: Sequence[Any], outputs: Sequence[Any], rows: tuple[int, int]
    ) -> tuple[int, ...] | None:
        """Which inputs hold the batch along their first dimension."""
        for batched in _guesses(inputs, outputs[0].shape[0]):
            if self._independent(case, inputs, outputs, batched, rows):
                return batched
        return None

    def _independent(
        self, case: int, inputs: Sequence[Any], outputs: Sequence[Any], batched: tuple[int, ...], rows: tuple[int, int]
    ) -> bool:
        tolerance = self._reference.contract["tolerance"]
        try:
            alone = self._reference.outputs(case, _cut(inputs, batched, rows))
        except ReferenceFailed:
            return False  # it is not made for a part of the batch
        among = [t[rows[0] : rows[1]].contiguous() for t in outputs]
        same_form = all(a.shape == b.shape and a.dtype == b.dtype for a, b in zip(alone, among, strict=True))
        return same_form and all(
            expect(b, None, tolerance).error(a.contiguous()) <= 1 for a, b in zip(alone, among, strict=True)
        )


def _guesses(inputs: Sequence[Any], batch: int) -> Iterator[tuple[int, ...]]:
    """All inputs of the batch's length; where that is wrong (a square factor of a product), the first of them alone."""
    fitting = tuple(i for i, x in enumerate(inputs) if x.dim() and x.shape[0] == batch)
    yield from dict.fromkeys((fitting, fitting[:1])) if fitting else ()


def _cut(inputs: Sequence[Any], batched: Sequence[int], rows: tuple[int, int]) -> list[Any]:
    return [x[rows[0] : rows[1]].clone() if i in batched else x.clone() for i, x in enumerate(inputs)]
