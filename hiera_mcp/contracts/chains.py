"""Fusable chains: operators that can become one kernel (loop fusion as compilers do it, e.g. XLA's producer-consumer
fusion; here only found, not judged).

A chain has one operator whose result leaves it, at the end. An operator joins the chain of its readers when all of them
lie in it, so that its result need not be written for anybody else; this keeps a chain convex: no path leaves it and comes
back.

A reduction is crossed where a chain goes on with its result, or where its operands are made in the chain and read twice
(normalisations). One that is too long for a thread block is not crossed. What follows a long normalisation may still join
its second pass, and a scan hands each result on as soon as it has it, so it is never in the way.

Two contractions are in one chain only where the second can take the result of the first tile by tile (back-to-back
products, as in attention: Dao et al. 2022): it is the left factor, and both the inner dimension of the first and the
columns of the second are few. A softmax between them may be of any length, since it can be computed online.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hiera_mcp.contracts.flow import CONTRACTIONS, REDUCING, Flow, added
from hiera_mcp.model.contract import Chain

ON_CHIP = 65536
"""Elements of a reduction whose operands one thread block, or a cluster of them, can hold until its result is there."""
TILE = 512
"""The same beside the accumulators of a contraction."""
COLUMNS = 256
"""Inner dimension of a first and columns of a second product that fit on chip side by side."""
SOFTMAX = ("aten._softmax", "aten._safe_softmax")
LEFT = ("self", "mat1", "batch1", "input")
"""Left factors, as schemas name them."""
NAMED = 8
"""Operators of a chain that are named."""
FUSABLE = ("elementwise", "movement", *REDUCING, *CONTRACTIONS)


@dataclass
class _Group:
    """A chain in the making."""

    calls: list[int]
    anchors: tuple[int, ...]
    """Numbers of its contractions, in order."""
    norms: dict[int, int]
    """Normalisations in it and their lengths, but for those that are computed online."""
    longest: int
    """Of `norms`."""
    left: set[int] = field(default_factory=set[int])
    """Calls that make the left factor of its contraction, if that can take it tile by tile."""
    crossed: int = 1
    """Longest reduction that is crossed."""
    inner: list[int] = field(default_factory=list[int])
    """Values that stay inside."""

    def take(self, other: "_Group") -> None:
        """All but `left` and `crossed`."""
        self.calls += other.calls
        self.inner += other.inner
        self.norms |= other.norms
        self.longest = max(self.longest, other.longest)
        self.anchors = tuple(sorted(self.anchors + other.anchors))


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
    """A call by itself; None for one that no kernel takes along, or whose result nobody wants."""
    operator = flow.operator(flow.trace.calls[n])
    if operator.kind not in FUSABLE or not flow.live[n]:
        return None
    norms = {n: operator.reduced} if operator.kind == "normalisation" else {}
    return _Group([n], (n,) if operator.kind in CONTRACTIONS else (), norms, norms.get(n, 1))


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
    streamed = _streamed(flow, n, readers, home)
    if own.anchors and home.anchors and not (streamed and _few(flow, own, home)):
        return False
    norms = _kept(flow, own.norms) if streamed else own.norms
    longest = max(norms.values(), default=1) if streamed else own.longest
    crossed = max(own.crossed, home.crossed, _crossed(flow, n, readers, home))
    anchored = own.anchors or home.anchors
    if max(crossed, longest, home.longest) > TILE if anchored else crossed > ON_CHIP:
        return False
    own.norms, own.longest, own.crossed, home.crossed = norms, longest, crossed, crossed
    own.left = home.left = _left(own, home, streamed)
    _merge(flow, group_of, own, home, n)
    return True


def _kept(flow: Flow, norms: dict[int, int]) -> dict[int, int]:
    """Without those that are computed online."""
    return {n: size for n, size in norms.items() if flow.name(n) not in SOFTMAX}


def _merge(flow: Flow, group_of: list[_Group | None], own: _Group, home: _Group, n: int) -> None:
    """The smaller into the larger, so that all of them together take near linear time."""
    small, large = sorted((own, home), key=lambda g: len(g.calls))
    large.take(small)
    large.inner += flow.trace.calls[n].writes
    for member in small.calls:
        group_of[member] = large


def _crossed(flow: Flow, n: int, readers: set[int], home: _Group) -> int:
    """The longest reduction that lies between call `n` and its readers."""
    operator = flow.operator(flow.trace.calls[n])
    own = operator.reduced if operator.kind == "reduction" else 1
    return max([own, *(home.norms.get(r, 1) for r in readers)])


def _left(own: _Group, home: _Group, streamed: bool) -> set[int]:
    if own.anchors:
        return set() if home.anchors else own.left
    return home.left | set(own.calls) if streamed else home.left


def _streamed(flow: Flow, n: int, readers: set[int], home: _Group) -> bool:
    """Whether call `n` is on the way to the left factor of the product in `home`, and that has few columns."""
    if len(home.anchors) != 1:
        return False
    anchor = home.anchors[0]
    return all(r in home.left or (r == anchor and _takes(flow, anchor, n)) for r in readers)


def _takes(flow: Flow, anchor: int, n: int) -> bool:
    """Whether a product with few columns takes the result of call `n` as its left factor."""
    call, written = flow.trace.calls[anchor], flow.trace.calls[n].writes
    product = flow.operator(call)
    if product.kind != "gemm" or not product.result or product.result[-1] > COLUMNS:
        return False
    given = zip(call.reads, product.arguments, strict=True)
    places = [a.name in LEFT and not added(product.name, a.name) for v, a in given if v in written]
    return bool(places) and all(places)


def _few(flow: Flow, own: _Group, home: _Group) -> bool:
    """Whether two chains have one product each, the first with a short inner dimension."""
    first = flow.operator(flow.trace.calls[own.anchors[0]])
    return len(own.anchors) == len(home.anchors) == 1 and first.kind == "gemm" and first.reduced <= COLUMNS


def _readers(flow: Flow, n: int) -> Iterator[int]:
    for v in flow.trace.calls[n].writes:
        yield from flow.readers[v]


def _chain(flow: Flow, groups: Sequence[_Group]) -> Chain:
    first = groups[0]
    calls = [n for g in groups for n in g.calls]
    names = [flow.name(n) for n in sorted(first.calls)]
    left = len(names) - NAMED
    return Chain(
        operators=(*names[:NAMED], f"… and {left} more") if left > 0 else tuple(names),
        anchor=", ".join(flow.name(n) for n in first.anchors),
        length=len(names),
        count=len(groups),
        crosses=crosses if (crosses := max(first.crossed, _longest_norm(flow, first))) > 1 else 0,
        saved_bytes=float(sum(_saved(flow, g) for g in groups)),
        share=flow.share(calls),
    )


def _longest_norm(flow: Flow, group: _Group) -> int:
    operators = [flow.operator(flow.trace.calls[n]) for n in group.calls]
    return max((o.reduced for o in operators if o.kind == "normalisation"), default=1)


def _saved(flow: Flow, group: _Group) -> int:
    """What stays on chip is neither written (unless it is an output as well) nor read; the rest is read once, not by each."""
    inner = set(group.inner)
    written = sum(flow.trace.values[v].nbytes for v in inner if not flow.trace.values[v].owner)
    reads: dict[int, list[int]] = {}
    for n in group.calls:
        call = flow.trace.calls[n]
        contraction = flow.operator(call).kind in CONTRACTIONS  # its tiles are not those of its epilogue
        for v in set(call.reads):
            if v in inner or not contraction:
                reads.setdefault(v, []).append(flow.read_bytes(n, v))
    return written + sum(sum(sizes) - (0 if v in inner else max(sizes)) for v, sizes in reads.items())
