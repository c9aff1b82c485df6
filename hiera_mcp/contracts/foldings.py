"""Which batch norms may be folded into the operator beside them: a question to the dataflow, not to the module's type."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hiera_mcp.contracts.readings import Reading, State, dense
from hiera_mcp.model.work import TracedArgument, TracedCall, TracedOperator

_CONTRACTIONS = ("gemm", "conv")
_WEIGHTS = ("weight", "mat2", "batch2")
"""Arguments of contractions along whose last or first dimension the output channels lie."""
_OPERANDS = (("input", "self"), ("input", "mat1"))
"""The other operand; in aten.addmm `self` is what is added."""


@dataclass(frozen=True)
class Norm:
    """One call of a norm over channels with running statistics (batch or instance norm)."""

    call: int
    name: str
    """`BatchNorm2d bn1`."""
    batch: bool
    """It normalises by statistics of its own input, not by the running ones."""
    extent: int
    """Elements behind each mean."""
    before: int | None
    """The call of the convolution or matrix product that it may be folded into, as its result is read by the norm alone."""
    after: int | None
    """The call that reads the norm's result alone and may take scale and shift in."""
    reason: str
    """Why it cannot be folded into what comes before it."""


@dataclass(frozen=True)
class Foldings:
    """The norms over channels of a trace."""

    state: State

    @cached_property
    def norms(self) -> Mapping[int, Norm]:
        """By the number of their call."""
        calls = self.state.trace.calls
        return {n: self._norm(n, call) for n, call in enumerate(calls) if is_norm(self.state.flow.operator(call))}

    def norms_behind(self, reading: Reading) -> Sequence[tuple[Norm, bool]]:
        """The norms that read the result of a contraction, each with: does it alone read it?"""
        call = self.state.trace.calls[reading.call]
        if reading.operator.kind not in _CONTRACTIONS:
            return ()
        readers = self.state.flow.readers[call.writes[0]]
        return tuple((self.norms[n], self._alone(call.writes[0])) for n in readers if n in self.norms)

    def name(self, call: int) -> str:
        return self.state.name(self.state.trace.calls[call])

    def _norm(self, n: int, call: TracedCall) -> Norm:
        operator = self.state.flow.operator(call)
        batch = bool(operator.settings.get("training", operator.reduced > 1))
        source = call.reads[0]
        reason = self._reason(n, source, operator.arguments[0])
        before = None if reason or batch else self.state.flow.writer[source]
        after = None if batch else self._after(call, operator)
        return Norm(n, self.state.name(call), batch, operator.reduced, before, after, reason)

    def _alone(self, value: int) -> bool:
        """Does one call read it, and nobody outside?"""
        return len(self.state.flow.readers[value]) == 1 and not self.state.trace.values[value].owner

    def _reason(self, norm: int, value: int, read: TracedArgument) -> str:
        """Why a norm cannot be folded into what writes the value that it reads; empty: it can."""
        writer = self.state.flow.writer[value]
        owner = self.state.trace.values[value].owner
        if writer is None:
            return f"it reads {owner or 'memory that no operator writes'}, not the result of a convolution or matrix product"
        call = self.state.trace.calls[writer]
        made = self.state.flow.operator(call)
        if made.kind not in _CONTRACTIONS:
            return f"its input is written by {made.name}, not by a convolution or matrix product"
        if not self._reads_constant(call, _WEIGHTS):
            return f"what {made.name} before it multiplies its channels with is no parameter: both operands depend on the inputs"
        if not self._alone(value):
            others = [self.name(n) for n in self.state.flow.readers[value] if n != norm]
            return f"{' and '.join(others[:3]) or owner} needs the result of {self.state.name(call)} as it is, too"
        if not _per_channel(made, read):
            return f"its channels are not the output channels of {self.state.name(call)}"
        return ""

    def _reads_constant(self, call: TracedCall, names: Sequence[str]) -> bool:
        """Is an argument of one of these names a function of parameters alone?"""
        return any(self.state.constant[v] for v, _ in self._named(call, names))

    def _named(self, call: TracedCall, names: Sequence[str]) -> Sequence[tuple[int, TracedArgument]]:
        """The arguments of these names, each with its value."""
        arguments = self.state.flow.operator(call).arguments
        return [(v, a) for v, a in zip(call.reads, arguments, strict=False) if a.name in names]

    def _after(self, call: TracedCall, norm: TracedOperator) -> int | None:
        """A linear layer, or a convolution without padding, that alone reads the norm's result."""
        size = self.state.trace.values[call.reads[0]].nbytes
        results = [v for v in call.writes if self._alone(v) and self.state.trace.values[v].nbytes == size]
        for result in results[:1]:
            reader = self.state.flow.readers[result][0]
            if self._takes_shift(self.state.trace.calls[reader], result, norm.result):
                return reader
        return None

    def _takes_shift(self, call: TracedCall, result: int, shape: Sequence[int]) -> bool:
        """Does a call multiply the channels of a norm's result with a parameter, everywhere alike?"""
        operator = self.state.flow.operator(call)
        read = [a for v, a in self._named(call, _OPERANDS[operator.name.endswith("addmm")]) if v == result]
        if operator.kind not in _CONTRACTIONS or not self._reads_constant(call, _WEIGHTS) or not read:
            return False
        if operator.kind == "conv":
            padding = operator.settings.get("padding")
            plain = not operator.settings.get("transposed") and isinstance(padding, list) and not any(padding)
            return plain and read[0].shape == tuple(shape)
        return len(shape) == 2 and read[0].shape == tuple(shape)


def is_norm(operator: TracedOperator) -> bool:
    """Batch norm; instance norm too, which PyTorch runs as a batch norm of one sample with N · C channels."""
    return "batch_norm" in operator.name and bool(operator.arguments) and "backward" not in operator.name


def _per_channel(made: TracedOperator, read: TracedArgument) -> bool:
    """Is dimension 1 of what the norm reads the dimension of the contraction's output channels?"""
    if made.kind == "conv":
        told_apart = len(set(read.shape[1:])) == len(read.shape) - 1 or read.strides == dense(read.shape)
        instance = (1, made.result[0] * made.result[1], *made.result[2:])
        return told_apart and read.shape in (made.result, instance)
    return len(read.shape) > 1 and read.shape[1] == made.result[-1] and read.strides[1] == 1
