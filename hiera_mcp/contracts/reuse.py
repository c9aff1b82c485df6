"""Data reuse: what the reference reads more than once, and how much arithmetic each element of it serves."""

import math
from collections.abc import Iterator

from hiera_mcp.contracts.flow import CONTRACTIONS, Flow
from hiera_mcp.model.contract import Reuse

ADDED = {name: ("self",) for name in ("aten.addmm", "aten.baddbmm", "aten.addmv", "aten.addbmm")}
"""Arguments of a contraction that are only added to its result."""
MOST = 24
"""Rows kept: the largest by what is read again."""


def reuse_of(flow: Flow) -> tuple[Reuse, ...]:
    """Tensors with several readers, and those that a contraction reads."""
    rows: dict[str, Reuse] = {}
    for v, readers in enumerate(flow.readers):
        uses = max(_uses(flow, v), default=0.0)
        if len(readers) > 1 or uses:
            row = Reuse(tensor=_name(flow, v), readers=len(readers), nbytes=flow.trace.values[v].nbytes, uses=uses)
            kept = rows.setdefault(row.tensor, row)
            rows[row.tensor] = row if _again(row) > _again(kept) else kept
    return tuple(sorted(rows.values(), key=lambda r: -_again(r))[:MOST])


def _again(row: Reuse) -> float:
    return row.nbytes * max(row.readers - 1, 1 if row.uses else 0)


def _uses(flow: Flow, value: int) -> Iterator[float]:
    """Multiplications and additions per element, for each contraction that reads the value."""
    for n in flow.readers[value]:
        call = flow.trace.calls[n]
        operator = flow.operator(call)
        argument = operator.arguments[call.reads.index(value)]
        if operator.kind in CONTRACTIONS and argument.name not in ADDED.get(operator.name, ("bias",)):
            yield operator.flops / max(1, math.prod(argument.shape))


def _name(flow: Flow, value: int) -> str:
    owner = flow.trace.values[value].owner
    if owner and not owner.startswith("outputs."):
        return owner
    writer = flow.writer[value]
    source = flow.operator(flow.trace.calls[writer]).name if writer is not None else "a captured tensor"
    return f"{source} → {', '.join(sorted({flow.operator(flow.trace.calls[n]).name for n in flow.readers[value]}))}"
