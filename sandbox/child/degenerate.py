"""Trivial answers: outputs that take no work. By how much is each told from the right one? (docs/verification.md)

A figure is the error of the best answer of its kind, as a fraction of the limit that candidates are held to. An answer
that depends on nothing new is told by two trials: their outputs have to lie TOLD limits apart, so that no one tensor passes
both, be it kept from a call, made of parameters or written down in the source.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hiera_mcp.sandbox.child.compare import CHUNK, WORST, Expected

TOLD = 2.0
"""A trivial answer counts as told from this figure on."""
SAMPLE = 1 << 16
"""Elements of an output that are looked at first: finding one that is clearly off is enough."""
INVARIANT = 1e-6
"""An output that varies by less than this figure against a float64 oracle does not vary: its reference broadcasts."""

ZEROS, CONSTANT, OTHER_INPUTS = "zeros", "constant", "other_inputs"
ECHO, ALONG = "input_echo ", "constant_along "
"""Beginnings of kinds: followed by an input's name, and by a dimension of the output."""


@dataclass(frozen=True)
class Part:
    """An output, or a block of it, with the tensors that could be passed off as it."""

    expected: Expected
    truth: Any
    echoes: dict[str, Any]
    earlier: Any | None

    def error(self, answer: Any) -> float:
        """Greatest error of `answer` as a fraction of its element's limit."""
        return self.expected.error_of(answer, self.truth)

    def spread(self, low: Any, high: Any) -> float:
        """The figure of the best constants between the ends of what they have to stand for.

        |c - o| <= f·limit(o) holds for all o in [low, high] and some c from f = (high - low) / (limit(low) + limit(high))
        on: the limits grow more slowly than the distance to c, so the ends are the hardest, and intervals on a line that
        meet in pairs have a point in common.
        """
        if self.expected.exact:
            return WORST if bool((low != high).any()) else 0.0
        low, high = low.double(), high.double()
        figure = (high - low) / (self.expected.limit(low) + self.expected.limit(high))
        return float(figure.max()) if figure.numel() else 0.0


def kinds_of(output: Sequence[int], inputs: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """The kinds of trivial answers that an output of this shape can have.

    Args:
        output: its shape.
        inputs: the specifications of the inputs (name, shape).
    """
    size = _numel(output)
    echoes = [ECHO + t["name"] for t in inputs if _numel(t["shape"]) >= size]
    long = [d for d, n in enumerate(output) if n > 1]
    axes = [f"{ALONG}{d}" for d in long] if len(long) > 1 else []
    return (ZEROS, *([CONSTANT] if long else []), *echoes, OTHER_INPUTS, *axes)


def figures(expected: Expected, inputs: dict[str, Any], earlier: Any | None, kinds: Iterable[str]) -> dict[str, float]:
    """Kind → figure, for those of `kinds` that can be judged in this trial; a lower bound where it is TOLD or more.

    Args:
        inputs: name → tensor.
        earlier: the output for other inputs of the same distribution, with the same parameters; None when there is none.
    """
    whole = Part(expected, expected.oracle, _echoes(expected, inputs), earlier)
    block = _block(whole)
    seen = {kind: _figure(kind, block) for kind in kinds}
    return {k: f if f >= TOLD or block is whole else _figure(k, whole) for k, f in seen.items() if f is not None}


def _figure(kind: str, part: Part) -> Any:
    """None when this trial cannot tell."""
    if not part.truth.numel():
        return WORST
    if kind == ZEROS:
        return part.error(part.truth.new_zeros(()).expand(part.truth.shape))
    if kind == OTHER_INPUTS:
        return None if part.earlier is None else part.error(part.earlier)
    if kind.startswith(ECHO):
        return part.error(part.echoes[kind.removeprefix(ECHO)])
    if kind.startswith(ALONG):
        return _along(part, int(kind.removeprefix(ALONG)))
    return part.spread(*_ordered(part.truth).aminmax())


def _along(part: Part, dim: int) -> float:
    if part.truth.shape[dim] == 1:
        return 0.0
    shape = part.truth.shape
    stacked = _ordered(part.truth).reshape(_numel(shape[:dim]), shape[dim], _numel(shape[dim + 1 :]))
    split = 2 if stacked.shape[2] > stacked.shape[0] else 0
    step = max(1, CHUNK * stacked.shape[split] // stacked.numel())
    pieces = [piece.aminmax(dim=1) for piece in stacked.split(step, dim=split)]
    return max(part.spread(low, high) for low, high in pieces)


def _ordered(truth: Any) -> Any:
    """Booleans as numbers, which have a least and a greatest."""
    import torch

    return truth.byte() if truth.dtype is torch.bool else truth


def _echoes(expected: Expected, inputs: dict[str, Any]) -> dict[str, Any]:
    """Each input that is large enough, reshaped; of a larger one the first elements."""
    size, shape = expected.oracle.numel(), expected.oracle.shape
    return {n: x.reshape(-1)[:size].view(shape) for n, x in inputs.items() if x.numel() >= size}


def _block(part: Part) -> Part:
    """A block at a random place, of at most SAMPLE elements; of each dimension as much as fits evenly."""
    place = _place(part.truth.shape)
    if place is None:
        return part
    earlier = None if part.earlier is None else part.earlier[place]
    return Part(part.expected, part.truth[place], {n: x[place] for n, x in part.echoes.items()}, earlier)


def _place(shape: Sequence[int]) -> tuple[slice, ...] | None:
    import random

    if _numel(shape) <= 2 * SAMPLE:
        return None
    room, lengths = SAMPLE, [0] * len(shape)
    for left, (n, d) in zip(range(len(shape), 0, -1), sorted((n, d) for d, n in enumerate(shape)), strict=True):
        lengths[d] = max(1, min(n, int(room ** (1 / left))))
        room = max(1, room // lengths[d])
    starts = [random.SystemRandom().randrange(n - k + 1) for n, k in zip(shape, lengths, strict=True)]
    return tuple(slice(a, a + k) for a, k in zip(starts, lengths, strict=True))


def _numel(shape: Sequence[int]) -> int:
    n = 1
    for d in shape:
        n *= d
    return n


@dataclass
class Told:
    """What trials have told so far, per case and output."""

    cases: Sequence[dict[str, Any]]
    """The contract's cases: inputs and outputs with name and shape."""
    oracle: Callable[[], bool] = lambda: True
    """Whether what outputs are compared with is float64."""
    best: dict[tuple[int, int], dict[str, float]] = field(default_factory=dict[tuple[int, int], dict[str, float]])
    """(case, output) → kind → greatest figure of the trials so far; 0 before the first."""

    def __post_init__(self) -> None:
        for c, case in enumerate(self.cases):
            for i, output in enumerate(case["outputs"]):
                self.best[c, i] = dict.fromkeys(kinds_of(output["shape"], case["inputs"]), 0.0)

    def see(
        self, case: int, expected: Sequence[Expected], inputs: Sequence[Any], earlier: Sequence[Any] | None
    ) -> None:
        """Take one trial into account; looks only for what was not told yet."""
        named = {t["name"]: x for t, x in zip(self.cases[case]["inputs"], inputs, strict=True)}
        for i, e in enumerate(expected):
            best = self.best[case, i]
            untold = [k for k, f in best.items() if f < TOLD]
            new = figures(e, named, None if earlier is None else earlier[i], untold) if untold else {}
            best |= {k: max(f, best[k]) for k, f in new.items()}

    def untold(self, case: int | None = None) -> list[tuple[int, int, str]]:
        """(case, output, kind) of what must be told and is not: without it there is no verdict.

        Not a copy of an input that is right bit by bit in all trials: the reference copies, and a copy takes work.
        """
        return [(c, i, k) for c, i, k in self.open(case) if not k.startswith(ALONG)]

    def open(self, case: int | None = None) -> list[tuple[int, int, str]]:
        """The same and what should be told, but may stay: an output that varies along a dimension, and only a little."""
        return [(c, i, k) for c, i, k in self.passing(case) if not (k.startswith(ECHO) and self._copies(c, i, k))]

    def passing(self, case: int | None = None) -> list[tuple[int, int, str]]:
        """The same and exact copies: all that would pass. Not a value that the reference broadcasts: it takes work to know
        it, and that it is the right one is told by OTHER_INPUTS."""
        found = [(c, i, k) for (c, i), best in self.best.items() for k, f in best.items() if f < TOLD]
        return [(c, i, k) for c, i, k in found if case in (None, c) and not self._broadcast(c, i, k)]

    def _copies(self, case: int, output: int, kind: str) -> bool:
        return self.best[case, output][kind] == 0.0

    def _broadcast(self, case: int, output: int, kind: str) -> bool:
        noise = INVARIANT if self.oracle() else 1e4 * INVARIANT
        return kind.startswith((CONSTANT, ALONG)) and self.best[case, output][kind] < noise

    def fates(self) -> dict[str, bool]:
        """zeros, constant (for all elements, or along a dimension), input_echo, other_inputs → would it have passed in the
        trials so far, for some output?

        A constant counts where it is known without work, or the output varies; not where the reference broadcasts.
        """
        passing = {(c, i, k.partition(" ")[0]) for c, i, k in self.passing()}
        flat = {(c, i, CONSTANT) for c, i, k in passing if k in (ZEROS, OTHER_INPUTS) and self._flat(c, i)}
        names = {CONSTANT if k == ALONG.strip() else k for _, _, k in passing | flat}
        return {kind: kind in names for kind in (ZEROS, CONSTANT, ECHO.strip(), OTHER_INPUTS)}

    def _flat(self, case: int, output: int) -> bool:
        return self.best[case, output].get(CONSTANT, TOLD) < TOLD

    def summary(self, case: int, output: int) -> dict[str, float]:
        """Margin.trivial of one output: its greatest figures; of several echoes or dimensions the least told one."""
        best = self.best[case, output]
        names = dict.fromkeys(k.partition(" ")[0] for k in best)
        return {n: min(f for k, f in best.items() if k.partition(" ")[0] == n) for n in names}
