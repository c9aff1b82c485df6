"""Data reuse: what the reference reads more than once, and how much arithmetic each element of it serves."""

import math
from collections.abc import Iterator

from hiera_mcp.contracts.flow import CONTRACTIONS, Flow, added
from hiera_mcp.model.contract import Reuse

MOST = 24
"""Rows kept: the largest by what is read again."""


def reuse_of(flow: Flow) -> tuple[Reuse, ...]:
    """Tensors that are read more than once, and those that a contraction reads; the largest of each name."""
    rows: dict[str, tuple[int, Reuse]] = {}
    for v, readers in enumerate(flow.readers):
        uses = max(_uses(flow, v), default=0.0)
        nbytes = flow.trace.values[v].nbytes
        again = sum(flow.read_bytes(n, v) for n in readers) - nbytes
        if again > 0 or uses:
            row = Reuse(tensor=_name(flow, v), readers=len(readers), nbytes=nbytes, uses=uses)
            weight = max(again, nbytes if uses else 0)
            if row.tensor not in rows or weight > rows[row.tensor][0]:
                rows[row.tensor] = (weight, row)
    return tuple(row for _, row in sorted(rows.values(), key=lambda pair: -pair[0])[:MOST])


def _uses(flow: Flow, value: int) -> Iterator[float]:
    """Multiplications and additions per element, for each contraction that reads the value."""
    for n in flow.readers[value]:
        call = flow.trace.calls[n]
        operator = flow.operator(call)
        argument = operator.arguments[call.reads.index(value)]
        if operator.kind in CONTRACTIONS and not added(operator.name, argument.name):
            yield round(operator.flops / max(1, math.prod(argument.shape)), 1)


def _name(flow: Flow, value: int) -> str:
    owner = flow.trace.values[value].owner
    if owner and not owner.startswith("outputs."):
        return owner
    writer = flow.writer[value]
    source = flow.operator(flow.trace.calls[writer]).name if writer is not None else "a captured tensor"
    return f"{source} → {', '.join(sorted({flow.operator(flow.trace.calls[n]).name for n in flow.readers[value]}))}"
