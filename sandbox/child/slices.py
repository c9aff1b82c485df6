"""Limits by slices of an output: a row, channel or column that is much smaller than the rest has a scale of its own.

A slice is all elements with one index along a dimension. Errors of sums and products have the scale of their slices: a row of
a matrix product is as large, and as wrong, as the row of the factor that it comes from. An element lies in one slice along
each dimension; the smallest of their scales counts, and of their slacks the smallest as well.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

CHUNK = 1 << 22
"""Elements per step."""
LEAST = 64
"""Elements that are not zero which a slice must have: the rms, or the greatest error, of fewer (a channel that an activation
has almost cut off) says too little of what an honest error may be."""
SMALLER = 0.25
"""While no slice is below this part of the whole's scale, the whole's is the measure for all."""
ROUNDING = 2.0**-23
"""One rounding in float32, in which honest kernels accumulate: what is smaller than that beside the whole may be lost."""

Vectors = dict[int, Any]
"""Dimension → one value for each index along it."""
Part = tuple[slice, ...]


@dataclass(frozen=True)
class Slices:
    """The limits of one output's elements, where its slices differ much."""

    scales: Vectors
    """Root mean squares."""
    slacks: Vectors
    """How many times its bracket an element may be off: reference_factor times what the reference was off at most."""
    rms: float
    """Of the whole."""
    rtol: float
    atol: float
    tiny: float
    """The smallest normal number of the output's type: what is below may be flushed."""

    def bracket(self, part: Part, oracle: Any) -> Any:
        """atol · scale + rtol · |oracle| of the elements of a part."""
        scale = _least(self.scales, part, oracle.dim()).clamp(max=self.rms)
        absolute = (self.atol * scale).clamp(min=min(self.atol, ROUNDING) * self.rms)
        return absolute + self.rtol * oracle.abs() + self.tiny

    def limit(self, part: Part, oracle: Any) -> Any:
        """How far the elements of a part may be off."""
        return self.bracket(part, oracle) * _least(self.slacks, part, oracle.dim()).clamp(min=1.0)


def slices_of(truth: Any, reference: Any, rms: float, tiny: float, tolerance: dict[str, Any]) -> Slices | None:
    """The limits by slices; None where the whole's scale will do.

    Args:
        truth: what is right, in float64.
        reference: the reference's own output.
        rms: of `truth`.
    """
    dims = slice_dims(truth.shape)
    scales = {d: (v / (truth.numel() // truth.shape[d])).sqrt() for d, v in _squares(truth, dims).items()}
    if _alike(scales, rms):
        return None
    counts = fold(truth.shape, dims, lambda part: (truth[part] != 0).double(), "sum")
    few = {d: v < LEAST for d, v in counts.items()}
    scales = {d: v.masked_fill(few[d], rms) for d, v in scales.items()}
    if _alike(scales, rms):
        return None
    plain = Slices(scales, {}, rms, tolerance["rtol"], tolerance["atol"], tiny)

    def ratio(part: Part) -> Any:
        right = truth[part].double()
        return (reference[part].double() - right).abs() / plain.bracket(part, right)

    factor = tolerance["reference_factor"]
    greatest = fold(truth.shape, dims, ratio, "amax")
    slacks = {d: (factor * v).masked_fill(few[d], math.inf) for d, v in greatest.items()}
    return Slices(scales, slacks, rms, plain.rtol, plain.atol, tiny)


def scales_at(truth: Any, places: Any, rms: float) -> Any:
    """The least scale of the slices in which elements lie; the whole's, `rms`, where that is less, or where they say too little.

    Args:
        truth: what is right.
        places: indices of the elements in the flattened `truth`.
    """
    least = places.new_full(places.shape, rms, dtype=truth.double().dtype)
    dims = slice_dims(truth.shape)
    counts = fold(truth.shape, dims, lambda part: (truth[part] != 0).double(), "sum") if dims else {}
    for d, squares in _squares(truth, dims).items():
        scale = (squares / (truth.numel() // truth.shape[d])).sqrt().masked_fill(counts[d] < LEAST, rms)
        stride = math.prod(truth.shape[d + 1 :])
        least = least.minimum(scale[places // stride % truth.shape[d]])
    return least


def _alike(scales: Vectors, rms: float) -> bool:
    return all(bool((v >= SMALLER * rms).all()) for v in scales.values())


def slice_dims(shape: Sequence[int]) -> list[int]:
    """Dimensions whose slices are large enough to have a scale."""
    size = 1
    for n in shape:
        size *= n
    return [d for d, n in enumerate(shape) if n > 1 and size // n >= LEAST]


def parts(shape: Sequence[int]) -> Iterator[Part]:
    """Index tuples that cut a tensor along its longest dimension into parts of about CHUNK elements."""
    size = 1
    for n in shape:
        size *= n
    longest = max(range(len(shape)), key=lambda d: shape[d])
    step = max(1, CHUNK * shape[longest] // max(1, size))
    before = (slice(None),) * longest
    for start in range(0, shape[longest], step):
        yield (*before, slice(start, min(start + step, shape[longest])))


def fold(shape: Sequence[int], dims: Sequence[int], values: Callable[[Part], Any], how: str) -> Vectors:
    """For each of `dims`, the sum or amax over all others of what `values` gives for a part."""
    import torch

    found: dict[int, list[Any]] = {}
    for part in parts(shape):
        value = values(part)
        for d in dims:
            vector = getattr(value, how)([k for k in range(len(shape)) if k != d])
            earlier = found.setdefault(d, [])
            if len(part) == d + 1 or not earlier:  # cut along this dimension, each part has indices of its own
                earlier.append(vector)
            else:
                earlier[0] = earlier[0] + vector if how == "sum" else earlier[0].maximum(vector)
    return {d: torch.cat(vectors) for d, vectors in found.items()}


def _squares(tensor: Any, dims: Sequence[int]) -> Vectors:
    return fold(tensor.shape, dims, lambda part: tensor[part].double().pow(2), "sum") if dims else {}


def _least(vectors: Vectors, part: Part, rank: int) -> Any:
    """For each element of a part the least of its slices' values, in a form that broadcasts."""
    least: Any = None
    for d, vector in vectors.items():
        own = vector[part[d]] if d < len(part) else vector
        own = own.view([-1 if k == d else 1 for k in range(rank)])
        least = own if least is None else least.minimum(own)
    return least
