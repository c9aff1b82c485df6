"""Reductions of a workload: how long each is, how many there are side by side, and how their elements lie."""

import math
from collections.abc import Mapping, Sequence

from hiera_mcp.contracts.flow import REDUCING
from hiera_mcp.model.contract import Reduction
from hiera_mcp.model.work import Trace, TracedOperator


def reductions_of(trace: Trace) -> tuple[Reduction, ...]:
    """Sums, norms, softmax, pooling windows and scans; equal ones as one, in the order of the trace."""
    counts: dict[Reduction, int] = {}
    for o in trace.operators:
        if o.kind in REDUCING and o.reduced > 1 and not o.is_view and o.arguments:
            row = _reduction(o)
            counts[row] = counts.get(row, 0) + o.count
    return tuple(row.model_copy(update={"count": n}) for row, n in counts.items())


def _reduction(o: TracedOperator) -> Reduction:
    first = o.arguments[0]
    lengths = _lengths(first.shape, o.reduced_dims, o.reduced)
    return Reduction(
        operator=o.name,
        count=1,
        extent=o.reduced,
        results=math.prod(first.shape) // o.reduced if lengths else math.prod(o.result),
        contiguous=_contiguous(first.strides, lengths),
    )


def _lengths(shape: Sequence[int], dims: Sequence[int], extent: int) -> Mapping[int, int]:
    """Dimension → how many of its elements are in one reduction: of the first dimension a group may take a part (group
    norm), of the others all. Empty for windows, which overlap."""
    lengths = {d: shape[d] for d in dims}
    rest = math.prod(shape[d] for d in dims[1:])
    return lengths | {dims[0]: extent // rest} if dims else {}


def _contiguous(strides: Sequence[int], lengths: Mapping[int, int]) -> bool:
    """Whether the elements of one reduction lie next to each other."""
    step = 1
    for stride, size in sorted((strides[d], size) for d, size in lengths.items() if size > 1):
        if stride != step:
            return False
        step *= size
    return bool(lengths)
