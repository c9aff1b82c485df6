"""The dataflow of a trace: who writes and who reads each value. Everything here is linear in the number of calls."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from hiera_mcp.model.contract import OperatorKind
from hiera_mcp.model.work import Trace, TracedArgument, TracedCall, TracedOperator

CONTRACTIONS: tuple[OperatorKind, ...] = ("gemm", "conv", "attention")
"""Operators that are matrix products at heart."""
REDUCING: tuple[OperatorKind, ...] = ("reduction", "normalisation", "scan")
RECURRENT = ("LSTM", "GRU", "RNN")
"""Types of torch modules that a library runs as a whole."""


ADDED = frozenset({"bias", "attn_bias", "attn_mask"})
"""Arguments of a contraction that are only added to its result."""
ADDING_SELF = frozenset({"addmm", "baddbmm", "addbmm", "addmv", "addr", "_addmm_activation"})
"""Contractions that only add their argument `self`."""


@dataclass(frozen=True)
class Flow:
    """A trace with an estimate of what each kind of call takes.

    Args:
        seconds: of one call of each of `trace.operators`.
    """

    trace: Trace
    seconds: Sequence[float]

    @cached_property
    def total(self) -> float:
        """Estimated seconds of all calls; never 0."""
        return sum(self.seconds[c.operator] for c in self.trace.calls) or 1.0

    @cached_property
    def writer(self) -> Sequence[int | None]:
        """Value → number of the call that writes it."""
        found: list[int | None] = [None] * len(self.trace.values)
        for n, call in enumerate(self.trace.calls):
            for v in call.writes:
                found[v] = n
        return found

    @cached_property
    def live(self) -> Sequence[bool]:
        """Call → whether an output depends on it. Eager execution runs the others, too; a candidate need not. All do where
        it is not known which values are outputs."""
        wanted = [v.owner.startswith("outputs.") for v in self.trace.values]
        if not any(wanted):
            return [True] * len(self.trace.calls)
        found = [False] * len(self.trace.calls)
        for n, call in reversed(list(enumerate(self.trace.calls))):
            found[n] = any(wanted[v] for v in call.writes)
            for v in call.reads if found[n] else ():
                wanted[v] = True
        return found

    @cached_property
    def readers(self) -> Sequence[tuple[int, ...]]:
        """Value → numbers of the live calls that read it, each once."""
        found: list[dict[int, None]] = [{} for _ in self.trace.values]
        for n, call in enumerate(self.trace.calls):
            for v in call.reads if self.live[n] else ():
                found[v][n] = None
        return [tuple(calls) for calls in found]

    def read_bytes(self, n: int, value: int) -> int:
        """What call `n` reads of a value: a part of it through views; the whole but once where it is given twice."""
        call = self.trace.calls[n]
        given = zip(call.reads, self.operator(call).arguments, strict=True)
        pieces = [argument_bytes(a) for v, a in given if v == value]
        whole = max([self.trace.values[value].nbytes, *pieces])
        return min(sum(pieces), whole, self.operator(call).bytes_read)  # the last: what a gather picks

    def operator(self, call: TracedCall) -> TracedOperator:
        return self.trace.operators[call.operator]

    def name(self, n: int) -> str:
        """Of the operator that call `n` runs."""
        return self.operator(self.trace.calls[n]).name

    def share(self, calls: Sequence[int]) -> float:
        """Of the estimated time, what these calls take."""
        return min(1.0, sum(self.seconds[self.trace.calls[n].operator] for n in calls) / self.total)

    @cached_property
    def layers(self) -> frozenset[int]:
        """Numbers of the recurrent modules of torch. A class of the same name is none without their parameters."""
        paths = {p.path for p in self.trace.parameters}
        return frozenset(
            n
            for n, m in enumerate(self.trace.modules)
            if m.type in RECURRENT and f"{m.path}.weight_ih_l0".removeprefix(".") in paths
        )

    def recurrent(self, call: TracedCall) -> int | None:
        """Number of the recurrent module that makes this call."""
        return call.module if call.module in self.layers else None


def added(operator: str, argument: str) -> bool:
    """Whether a contraction only adds this argument to its result."""
    base = operator.rpartition(".")[2].removesuffix("_")
    return argument in ADDED or (argument == "self" and base in ADDING_SELF)


def argument_bytes(argument: TracedArgument) -> int:
    """Bytes of its distinct elements: an expanded dimension (stride 0) counts once."""
    points = math.prod(d for d, s in zip(argument.shape, argument.strides, strict=True) if s != 0)
    return points * item_bytes(argument.dtype)


@cache
def item_bytes(dtype: str) -> int:
    """`bool`, `int64`, `bfloat16`, `complex64`, `float8_e4m3fn` → 1, 8, 2, 8, 1."""
    bits = re.search(r"\d+", dtype)
    return max(1, int(bits[0]) // 8) if bits else 1
