"""Smaller inputs for the probe: get_inputs() itself draws them, with the sizes of what it makes changed on the way."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from hiera_mcp.sandbox.child.dispatch import dispatch_mode

BATCH = (4, 2)
"""Leading dimensions to try: more than one sample, so that an output that ignores the sample can be told."""
SHRINK = (2, 4, 8, 16, 32)
"""Divisors of the other dimensions."""
LEAST = 8
"""No other dimension gets shorter than this."""

Sizes = Callable[[tuple[int, ...]], tuple[int, ...]]


@dataclass(frozen=True)
class Plan:
    """Which dimensions of drawn tensors become shorter."""

    batch: dict[int, int]
    """Old → new, for leading dimensions."""
    rest: dict[int, int]
    """Old → new, for dimensions from `first` on."""
    first: int = 2
    divisor: int = 1
    """Where it is not 1: the constructor's integers that equal an old length become the new one too, and so parameters
    shrink, at least by this."""

    @property
    def changes_nothing(self) -> bool:
        return not (self.batch or self.rest)

    def __call__(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(self._dim(d, n) for d, n in enumerate(shape))

    def settings(self, values: Any) -> Any:
        """Constructor arguments under the plan."""
        if isinstance(values, list | tuple):
            items = [self.settings(v) for v in cast("Sequence[Any]", values)]
            return items if isinstance(values, list) else tuple(items)
        plain = isinstance(values, int) and not isinstance(values, bool) and self.divisor > 1
        return self.rest.get(values, values) if plain else values

    def _dim(self, d: int, n: int) -> int:
        n = self.batch.get(n, n) if d == 0 else n
        return self.rest.get(n, n) if d >= self.first else n


def plans(shapes: Sequence[Sequence[int]]) -> Iterator[Plan]:
    """Plans for inputs of these shapes, from the one that changes least: the batch; from the third dimension on; all; all
    together with the constructor's integers.

    Dimensions of equal length change together, so that what belongs together still fits.
    """
    leading = next((s[0] for s in shapes if s), 1)
    yield Plan({}, {})
    for batch in BATCH:
        yield Plan({leading: min(batch, leading)}, {})
    for first, settings in ((2, False), (0, False), (0, True)):
        lengths = {n for s in shapes for n in s[first:] if n > LEAST}
        for divisor in SHRINK if lengths else ():
            rest = {n: max(LEAST, n // divisor) for n in lengths}
            yield Plan({leading: min(BATCH[-1], leading)} if first else {}, rest, first, divisor if settings else 1)


def drawing(sizes: Sizes) -> Any:
    """A TorchDispatchMode under which factory functions (rand, randint, zeros, …) make tensors of other sizes.

    A function that is given a size, and no tensor, is a factory.
    """
    import torch

    def resized(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        names = [a.name for a in func._schema.arguments]
        fresh = "size" in names and not any(isinstance(a, torch.Tensor) for a in args)
        if fresh and names.index("size") < len(args):
            n = names.index("size")
            args = (*args[:n], list(sizes(tuple(args[n]))), *args[n + 1 :])
        return func(*args, **kwargs)

    return dispatch_mode(resized)


def in_words(full: Sequence[tuple[str, Sequence[int]]], small: Sequence[Sequence[int]]) -> str:
    """`x [4096, 393216] → [4, 393216]`, for the inputs that are smaller than the task's; empty when none is.

    Args:
        full: names and the task's own shapes.
    """
    changed = [(name, a, b) for (name, a), b in zip(full, small, strict=True) if list(a) != list(b)]
    return ", ".join(f"{name} {list(a)} → {list(b)}" for name, a, b in changed)
