"""Who reads each parameter, and in which arrangement: the dataflow of the state of a reference."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hiera_mcp.contracts.flow import Flow
from hiera_mcp.model.work import Trace, TracedArgument, TracedCall, TracedOperator, TracedParameter


@dataclass(frozen=True)
class Reading:
    """One operator that reads a parameter, or something that is computed from parameters alone."""

    call: int
    """Its number."""
    operator: TracedOperator
    argument: TracedArgument
    direct: bool
    """It reads the parameter itself."""

    @property
    def base(self) -> str:
        """The operator's name without namespace, and without the underscore of in-place operators."""
        return self.operator.name.rpartition(".")[2].rstrip("_")


@dataclass(frozen=True)
class State:
    """The parameters and buffers of a trace within its dataflow. Linear in the number of calls."""

    trace: Trace

    @cached_property
    def flow(self) -> Flow:
        return Flow(self.trace, ())

    @cached_property
    def value_of(self) -> Mapping[str, int]:
        """Path → the value that holds it when forward() starts."""
        found: dict[str, int] = {}
        for n, value in enumerate(self.trace.values):
            if value.owner.startswith("state."):
                found.setdefault(value.owner.removeprefix("state."), n)
        return found

    @cached_property
    def constant(self) -> Sequence[bool]:
        """Value → is it a function of parameters alone? Each call counts as a first one, so what forward() updates is too."""
        found = [v.owner.startswith("state.") for v in self.trace.values]
        for call in self.trace.calls:
            alone = all(found[v] for v in call.reads)
            for v in call.writes:
                found[v] = alone
        return found

    @cached_property
    def modules(self) -> Sequence[str]:
        """Module → `Conv2d conv1`; empty for the model and for modules that hold others."""
        paths = [m.path for m in self.trace.modules]
        holders = {path.rpartition(".")[0] for path in paths}
        return ["" if m.path in holders or not m.path else f"{m.type} {m.path}" for m in self.trace.modules]

    def name(self, call: TracedCall) -> str:
        """`Conv2d conv1`, or the operator that forward() calls: `aten.convolution`."""
        module = self.modules[call.module] if call.module < len(self.modules) else ""
        return module or self.flow.operator(call).name

    def direct(self, path: str) -> tuple[Reading, ...]:
        """Operators that read the parameter itself, each kind of call once, in order."""
        value = self.value_of.get(path)
        return () if value is None else once(self._readings(value, True))

    def uses(self, path: str) -> tuple[Reading, ...]:
        """Calls that bring it together with other data, looking through what is computed from parameters alone."""
        value = self.value_of.get(path)
        return () if value is None else tuple(self._onward(value))

    def _onward(self, start: int) -> Iterator[Reading]:
        waiting, seen = [start], {start}
        while waiting:
            value = waiting.pop()
            for reading in self._readings(value, value == start):
                results = self.trace.calls[reading.call].writes
                if not results or not all(self.constant[v] for v in results):
                    yield reading
                    continue
                waiting += [v for v in results if v not in seen]
                seen.update(results)

    def _readings(self, value: int, direct: bool) -> Iterator[Reading]:
        for n in self.flow.readers[value]:
            call = self.trace.calls[n]
            operator = self.flow.operator(call)
            for place, read in enumerate(call.reads):
                if read == value and place < len(operator.arguments):
                    yield Reading(n, operator, operator.arguments[place], direct)


def once(readings: Iterable[Reading]) -> tuple[Reading, ...]:
    """The first reading of each kind of call."""
    found: dict[tuple[int, int], Reading] = {}
    for r in readings:
        found.setdefault((id(r.operator), id(r.argument)), r)
    return tuple(found.values())


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a dense tensor in C order, in elements."""
    return tuple(math.prod(shape[n + 1 :]) for n in range(len(shape)))


def axes(p: TracedParameter, argument: TracedArgument) -> tuple[int | None, ...] | None:
    """For each dimension of an argument, the dimension of the parameter that it is; None: it has only one element.

    Returns:
        None where the argument is no permutation of the whole parameter.
    """
    strides = p.strides or dense(p.shape)
    left = [d for d, size in enumerate(p.shape) if size > 1]
    found: list[int | None] = []
    for size, stride in zip(argument.shape, argument.strides, strict=True):
        same = [d for d in left if p.shape[d] == size and strides[d] == stride]
        if size != 1 and stride != 0 and not same:
            return None
        found.append(same[0] if same else None)
        left = [d for d in left if d != found[-1]]
    return None if left else _with_units(p, argument, found)


def _with_units(p: TracedParameter, argument: TracedArgument, found: list[int | None]) -> tuple[int | None, ...]:
    """Where the ranks are the same, dimensions of one element belong to those of one element, in order."""
    if len(argument.shape) != len(p.shape):
        return tuple(found)
    rest = iter([d for d in range(len(p.shape)) if d not in found])
    return tuple(next(rest) if d is None else d for d in found)


def arrangement(p: TracedParameter, argument: TracedArgument) -> str:
    """How an argument lies over the parameter: transposed, permuted, broadcast, a part, reshaped; empty: as it is."""
    order = axes(p, argument)
    if order is None:
        whole = math.prod(argument.shape) == math.prod(p.shape)
        return f"{'reshaped to' if whole else 'as'} {list(argument.shape)}"
    dims = [d for d in order if d is not None]
    if dims != sorted(dims):
        return "transposed" if len(dims) == 2 else f"permuted to {dims}"
    wide = any(size > 1 and d is None for size, d in zip(argument.shape, order, strict=True))
    return f"broadcast to {list(argument.shape)}" if wide else ""
