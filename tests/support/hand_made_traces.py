"""Traces made by hand, call by call."""

import math
from dataclasses import dataclass, field

from hiera_mcp.contracts.chains import chains_of
from hiera_mcp.contracts.flow import Flow
from hiera_mcp.model.contract import Chain, OperatorKind
from hiera_mcp.model.work import Trace, TracedArgument, TracedCall, TracedOperator, TracedValue


@dataclass
class HandMade:
    """Builds a trace call by call: values of float32, and calls that move what they read and write."""

    values: list[TracedValue] = field(default_factory=list[TracedValue])
    shapes: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    operators: list[TracedOperator] = field(default_factory=list[TracedOperator])
    calls: list[TracedCall] = field(default_factory=list[TracedCall])

    def value(self, owner: str = "", shape: tuple[int, ...] = (100,)) -> int:
        self.values.append(TracedValue(nbytes=4 * math.prod(shape), owner=owner))
        self.shapes.append(shape)
        return len(self.values) - 1

    def call(
        self,
        name: str,
        reads: list[int],
        kind: OperatorKind = "elementwise",
        shape: tuple[int, ...] = (100,),
        names: tuple[str, ...] = (),
        reduced: int = 1,
    ) -> int:
        """A call that makes one value; returns that."""
        made = self.value(shape=shape)
        operator = TracedOperator(
            name=f"aten.{name}",
            kind=kind,
            flops=0.0,
            bytes_read=sum(self.values[v].nbytes for v in set(reads)),
            bytes_written=self.values[made].nbytes,
            is_view=False,
            arguments=tuple(self._argument(v, n, names) for n, v in enumerate(reads)),
            result=shape,
            reduced=reduced,
        )
        if operator not in self.operators:
            self.operators.append(operator)
        number = self.operators.index(operator)
        self.calls.append(TracedCall(operator=number, reads=tuple(reads), writes=(made,)))
        return made

    def _argument(self, value: int, place: int, names: tuple[str, ...]) -> TracedArgument:
        shape = self.shapes[value]
        strides = tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))
        name = names[place] if place < len(names) else f"a{place}"
        return TracedArgument(name=name, shape=shape, strides=strides, dtype="float32")

    def output(self, *values: int) -> None:
        for v in values:
            self.values[v] = TracedValue(nbytes=self.values[v].nbytes, owner=f"outputs.out{v}")

    def trace(self) -> Trace:
        counts = [sum(c.operator == n for c in self.calls) for n in range(len(self.operators))]
        rows = [o.model_copy(update={"count": n}) for o, n in zip(self.operators, counts, strict=True)]
        return Trace(
            inputs=(),
            scalars=(),
            forward_order=(),
            outputs=(),
            parameters=(),
            operators=tuple(rows),
            calls=tuple(self.calls),
            values=tuple(self.values),
            trivial_outputs=None,
        )

    def flow(self) -> Flow:
        """A byte takes a second."""
        return Flow(self.trace(), [float(o.bytes_read + o.bytes_written) for o in self.operators])

    def chains(self) -> list[Chain]:
        return list(chains_of(self.flow()))

    def conv(self, x: int) -> int:
        return self.call("convolution", [x], "conv", reduced=9)
