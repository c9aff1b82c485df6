"""Reductions of a workload: how long each is, how many there are side by side, and how their elements lie."""

import math
from collections.abc import Sequence

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
    elements, made = math.prod(first.shape), math.prod(o.result)
    keeps_shape = made == elements
    return Reduction(
        operator=o.name,
        count=1,
        extent=o.reduced,
        results=elements // o.reduced if keeps_shape else made,
        contiguous=_contiguous(first.shape, first.strides, o.reduced_dims, o.reduced),
    )


def _contiguous(shape: Sequence[int], strides: Sequence[int], dims: Sequence[int], extent: int) -> bool:
    """Whether the elements of one reduction lie next to each other; those of a window never do."""
    if math.prod(shape[d] for d in dims) != extent:
        return False
    step = 1
    for stride, size in sorted((strides[d], shape[d]) for d in dims if shape[d] > 1):
        if stride != step:
            return False
        step *= size
    return True
