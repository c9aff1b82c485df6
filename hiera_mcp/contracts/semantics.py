"""What each parameter and buffer means: role, layout, who reads it, constraints, what may be prepared from it.

Of torch's own modules the meaning is known (parameter_rules, parametrised); of the task's own it follows from the operators
that read the tensor (operator_roles). What may be folded follows from the dataflow (foldings).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hiera_mcp.contracts.foldings import Foldings
from hiera_mcp.contracts.names import Namer
from hiera_mcp.contracts.norm_remarks import with_norms
from hiera_mcp.contracts.operator_roles import operator_rule
from hiera_mcp.contracts.parameter_rules import Rule, module_rule
from hiera_mcp.contracts.parametrised import parametrised_rule
from hiera_mcp.contracts.readings import Reading, State, arrangement, dense
from hiera_mcp.model.contract import Parameter
from hiera_mcp.model.work import Trace, TracedParameter

MOST_READERS = 6
UNREAD = "forward() does not read it"
IDLE = "no effect on the outputs: nothing that is returned depends on its value"
UPDATED = "forward() updates it, which is no output: leave it as is; each call starts from the value handed over"


def parameters_of(trace: Trace, namer: Namer) -> tuple[Parameter, ...]:
    """All parameters and buffers of a trace, with their meaning, under names unique in the interface."""
    state = State(trace)
    reader = _Reader(state, Foldings(state))
    return tuple(reader.parameter(p, namer) for p in trace.parameters)


def rule_of(p: TracedParameter, state: State, foldings: Foldings) -> Rule:
    """The meaning of one parameter or buffer."""
    uses = state.uses(p.path)
    rule = parametrised_rule(p, state) or module_rule(p) or operator_rule(p, uses)
    return with_norms(rule, p, uses, foldings)


@dataclass(frozen=True)
class _Reader:
    state: State
    foldings: Foldings

    def parameter(self, p: TracedParameter, namer: Namer) -> Parameter:
        rule = rule_of(p, self.state, self.foldings)
        readers = read_by(p, self.state.direct(p.path))
        idle = self._idle(p, readers)
        return Parameter(
            name=namer.name(p.path.replace(".", "_"), "param"),
            shape=p.shape,
            dtype=p.dtype,
            path=p.path,
            role=rule.role,
            layout=rule.layout,
            consumed_by=_consumer(p),
            constraints=(*rule.constraints, *idle, *_facts(p)),
            may_precompute="" if idle else rule.may,
            must_not_precompute="" if idle else rule.must_not,
            strides=dense(p.shape),
            read_by=readers,
            aliases=p.aliases,
        )

    def _idle(self, p: TracedParameter, readers: Sequence[str]) -> tuple[str, ...]:
        """Why it does not matter; nothing where it does, or where nothing is known."""
        if _unread(p, self.state.trace):
            return (UNREAD,)
        hidden = any(note.startswith("data-dependent") for note in self.state.trace.notes)  # NumPy may read it, say
        return (IDLE,) if not readers and p.path in self.state.value_of and not hidden else ()


def read_by(p: TracedParameter, readings: Sequence[Reading]) -> tuple[str, ...]:
    """`aten.addmm as mat2 (transposed)`: each operator once for each way of reading."""
    told = list(dict.fromkeys(_reading_text(p, r) for r in readings))
    return (*told[:MOST_READERS], f"{len(told) - MOST_READERS} more") if len(told) > MOST_READERS else tuple(told)


def _reading_text(p: TracedParameter, r: Reading) -> str:
    how = arrangement(p, r.argument)
    return f"{r.operator.name} as {r.argument.name}{f' ({how})' if how else ''}"


def _facts(p: TracedParameter) -> tuple[str, ...]:
    told = [UPDATED] if p.updated else []
    told += [f"tied: the same tensor as {', '.join(p.aliases)}; one prepared copy serves both"] if p.aliases else []
    told += [f"strides {list(p.strides)} in the reference; candidates get it dense, in C order"] if p.strides else []
    return tuple(told)


def _unread(p: TracedParameter, trace: Trace) -> bool:
    return trace.touched_bytes is not None and trace.touched_bytes.get(f"state.{p.path}") == 0


def _consumer(p: TracedParameter) -> str:
    """`Linear fc(in_features=96, out_features=32, bias=True)`; the type and path of a module of the task's own."""
    if not p.module_path:
        return f"{p.module_type}.forward()"
    whole = p.module_repr.startswith(f"{p.module_type}(") and p.module_repr.endswith(")") and "): " not in p.module_repr
    settings = p.module_repr.removeprefix(p.module_type) if whole else ""
    return f"{p.module_type} {p.module_path}{settings}"
