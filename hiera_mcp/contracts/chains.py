"""Fusable chains: operators that can become one kernel (loop fusion as compilers do it, e.g. XLA's producer-consumer
fusion; here only found, not judged).

A chain has one operator whose result leaves it, at the end. An operator joins the chain of its readers when all of them
lie in it, so that its result need not be written for anybody else; this keeps a chain convex: no path leaves it and comes
back. Two contractions are never in one chain, and a reduction that is too long for one thread block is not crossed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hiera_mcp.contracts.flow import CONTRACTIONS, REDUCING, Flow
from hiera_mcp.model.contract import Chain

ON_CHIP = 65536
"""Elements of a reduction whose operands one thread block, or a cluster of them, can hold until its result is there."""
TILE = 512
"""The same beside the accumulators of a contraction."""
NAMED = 8
"""Operators of a chain that are named."""
FUSABLE = ("elementwise", "movement", *REDUCING, *CONTRACTIONS)


@dataclass
class _Group:
    """A chain in the making."""

    calls: list[int]
    anchor: int | None
    """Number of its contraction."""
    crossed: int
    """Longest reduction whose result is used inside."""
    inner: list[int] = field(default_factory=list[int])
    """Values that stay inside."""


def chains_of(flow: Flow) -> tuple[Chain, ...]:
    """All chains of two operators or more, equal ones as one, those that save most first."""
    found: dict[tuple[int, ...], list[_Group]] = {}
    for group in _groups(flow):
        key = tuple(flow.trace.calls[n].operator for n in sorted(group.calls))
        found.setdefault(key, []).append(group)
    chains = [_chain(flow, groups) for groups in found.values()]
    return tuple(sorted(chains, key=lambda c: -c.saved_bytes))


def _groups(flow: Flow) -> list[_Group]:
    """Epilogues first: what follows a contraction belongs to it. Then all else, and prologues last."""
    group_of = [_single(flow, n) for n in range(len(flow.trace.calls))]
    for n, call in enumerate(flow.trace.calls):
        if flow.operator(call).kind in CONTRACTIONS:
            _extend(flow, group_of, n)
    for prologues in (False, True):
        for n in reversed(range(len(flow.trace.calls))):  # the readers of a value are grouped before its writer
            _join(flow, group_of, n, prologues)
    distinct = {id(g): g for g in group_of if g is not None and len(g.calls) > 1}
    return list(distinct.values())


def _single(flow: Flow, n: int) -> _Group | None:
    """A call by itself; None for one that no kernel takes along."""
    operator = flow.operator(flow.trace.calls[n])
    if operator.kind not in FUSABLE:
        return None
    crossed = operator.reduced if operator.kind == "normalisation" else 1
    return _Group([n], n if operator.kind in CONTRACTIONS else None, crossed)


def _extend(flow: Flow, group_of: list[_Group | None], last: int) -> None:
    """The straight line of operators behind a contraction, as far as one chain goes."""
    while len(readers := set(_readers(flow, last))) == 1:
        following = readers.pop()
        if not _joined(flow, group_of, last, {following}):
            return
        last = following


def _join(flow: Flow, group_of: list[_Group | None], n: int, prologues: bool) -> None:
    """Let the chain that ends in call `n` join that of its readers."""
    readers = set(_readers(flow, n))
    into_contraction = any(flow.operator(flow.trace.calls[r]).kind in CONTRACTIONS for r in readers)
    if readers and (prologues or not into_contraction):
        _joined(flow, group_of, n, readers)


def _joined(flow: Flow, group_of: list[_Group | None], n: int, readers: set[int]) -> bool:
    """Join the chain that ends in call `n` with the one that all its readers lie in, if that may be."""
    own, home = group_of[n], group_of[next(iter(readers))]
    if own is None or home is None or own is home or any(group_of[r] is not home for r in readers):
        return False
    if own.anchor is not None and home.anchor is not None:
        return False
    crossed = max(own.crossed, home.crossed, _reduced(flow, n))
    anchored = own.anchor is not None or home.anchor is not None
    if crossed > (TILE if anchored else ON_CHIP):
        return False
    home.calls += own.calls
    home.inner += [*own.inner, *flow.trace.calls[n].writes]
    home.anchor = home.anchor if own.anchor is None else own.anchor
    home.crossed = crossed
    for member in own.calls:
        group_of[member] = home
    return True


def _reduced(flow: Flow, n: int) -> int:
    operator = flow.operator(flow.trace.calls[n])
    return operator.reduced if operator.kind in REDUCING else 1


def _readers(flow: Flow, n: int) -> Iterator[int]:
    for v in flow.trace.calls[n].writes:
        yield from flow.readers[v]


def _chain(flow: Flow, groups: Sequence[_Group]) -> Chain:
    first = groups[0]
    calls = [n for g in groups for n in g.calls]
    names = [flow.operator(flow.trace.calls[n]).name for n in sorted(first.calls)]
    left = len(names) - NAMED
    return Chain(
        operators=(*names[:NAMED], f"… and {left} more") if left > 0 else tuple(names),
        anchor=flow.operator(flow.trace.calls[first.anchor]).name if first.anchor is not None else "",
        length=len(names),
        count=len(groups),
        crosses=first.crossed if first.crossed > 1 else 0,
        saved_bytes=float(sum(_saved(flow, v) for g in groups for v in g.inner)),
        share=flow.share(calls),
    )


def _saved(flow: Flow, value: int) -> int:
    """The reads of a value that stays on chip, and its write unless it is an output as well."""
    written = 0 if flow.trace.values[value].owner else 1
    return flow.trace.values[value].nbytes * (written + len(flow.readers[value]))
