"""The dataflow of a trace: who writes and who reads each value. Everything here is linear in the number of calls."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hiera_mcp.model.contract import OperatorKind
from hiera_mcp.model.work import Trace, TracedCall, TracedOperator

CONTRACTIONS: tuple[OperatorKind, ...] = ("gemm", "conv", "attention")
"""Operators that are matrix products at heart."""
REDUCING: tuple[OperatorKind, ...] = ("reduction", "normalisation", "scan")
RECURRENT = ("LSTM", "GRU", "RNN")
"""Types of torch modules that a library runs as a whole."""


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
    def readers(self) -> Sequence[tuple[int, ...]]:
        """Value → numbers of the calls that read it, each once."""
        found: list[dict[int, None]] = [{} for _ in self.trace.values]
        for n, call in enumerate(self.trace.calls):
            for v in call.reads:
                found[v][n] = None
        return [tuple(calls) for calls in found]

    def operator(self, call: TracedCall) -> TracedOperator:
        return self.trace.operators[call.operator]

    def share(self, calls: Sequence[int]) -> float:
        """Of the estimated time, what these calls take."""
        return min(1.0, sum(self.seconds[self.trace.calls[n].operator] for n in calls) / self.total)

    def recurrent(self, call: TracedCall) -> int | None:
        """Number of the recurrent module that makes this call."""
        if call.module >= len(self.trace.modules):
            return None
        return call.module if self.trace.modules[call.module].type in RECURRENT else None
