"""Trace → Contract. Pure: runs nothing, reads nothing."""

from collections.abc import Mapping
from types import MappingProxyType

from hiera_mcp.contracts.features import compulsory_bytes, features_of, parameter_bytes
from hiera_mcp.contracts.floor import floor_of, quantity
from hiera_mcp.contracts.names import Namer
from hiera_mcp.contracts.semantics import parameters_of
from hiera_mcp.contracts.tolerance import default_tolerance
from hiera_mcp.errors import TaskError
from hiera_mcp.model.contract import Case, Contract, Degeneracy, Precision, Task, TensorSpec
from hiera_mcp.model.hardware import Peaks
from hiera_mcp.model.space import Target
from hiera_mcp.model.work import HostRates, Trace, TracedCase


def build_contract(
    task: Task,
    target: Target,
    precision: Precision,
    trace: Trace,
    peaks: Peaks,
    memory_bytes: int,
    allow_tf32: bool = False,
    device: str = "",
    others: Mapping[str, Peaks] = MappingProxyType({}),
) -> Contract:
    """The contract of a task on a target.

    Args:
        peaks: of the target's GPU, or `cpu_peaks(trace, rates)`.
        memory_bytes: memory of the target; one call of the reference has to fit.
        device: name of the target's GPU, or `cpu`.
        others: devices to give the floor of as well, by name.

    Raises:
        TaskError: one call needs more memory than the target has.
    """
    _check_memory(trace, target, memory_bytes)
    namer = Namer()
    cases = cases_of(trace, namer)
    return Contract(
        task=task,
        target=target,
        precision=precision,
        parameters=parameters_of(trace, namer),
        cases=cases,
        tolerance=default_tolerance(precision, allow_tf32),
        features=features_of(trace, target, precision, peaks, allow_tf32),
        floor=floor_of(trace, precision, peaks, allow_tf32, device),
        floors=tuple(floor_of(trace, precision, p, allow_tf32, name) for name, p in others.items()),
        degeneracy=degeneracy_of(trace),
        notes=trace.notes,
    )


def cpu_peaks(trace: Trace, rates: HostRates) -> Peaks:
    """What the floor of the `cpu` target rests on: what this host was measured to do on as many bytes as the task moves."""
    return Peaks(
        bandwidth=rates.bandwidth_for(compulsory_bytes(trace)),
        flops=dict(rates.flops),
        basis="measured on this host: the faster of a copy and a read-only sum over as many bytes as the task moves "
        "(1 to 128 MiB, warm), and a matrix product",
    )


def cases_of(trace: Trace, namer: Namer) -> tuple[Case, ...]:
    """The traced shapes, under names that are legal in C++, unique in the interface, and the same in each case."""
    main = TracedCase(
        name=trace.case,
        inputs=trace.inputs,
        scalars=trace.scalars,
        forward_order=trace.forward_order,
        draws=trace.draws,
        outputs=trace.outputs,
    )
    names = {n: namer.name(n) for n in (*(t.name for t in main.inputs), *(s.name for s in main.scalars))}
    outputs = {t.name: namer.name(t.name, "out") for t in main.outputs}
    return tuple(_case(case, names, outputs) for case in (main, *trace.further_cases))


def _case(case: TracedCase, names: Mapping[str, str], outputs: Mapping[str, str]) -> Case:
    return Case(
        name=case.name,
        inputs=tuple(_renamed(t, names[t.name]) for t in case.inputs),
        scalars=tuple(s.model_copy(update={"name": names[s.name]}) for s in case.scalars),
        outputs=tuple(_renamed(t, outputs[t.name]) for t in case.outputs),
        forward_order=tuple(names[n] for n in case.forward_order),
        draws=tuple(names[n] for n in case.draws),
    )


def _renamed(spec: TensorSpec, name: str) -> TensorSpec:
    return spec.model_copy(update={"name": name})


def degeneracy_of(trace: Trace) -> Degeneracy:
    """The fate of trivial outputs, as the tracer saw it."""
    if trace.trivial_outputs is None:
        return Degeneracy(measured=False, reason=trace.probe_reason or "not probed")
    seen = trace.trivial_outputs
    return Degeneracy(
        measured=True,
        reason=trace.probe_reason,
        zeros_pass=seen.get("zeros"),
        constant_passes=seen.get("constant"),
        input_echo_passes=seen.get("input_echo"),
        other_inputs_pass=seen.get("other_inputs"),
        sizes=trace.probe_sizes,
        remedy=trace.probe_remedy,
        unverifiable=trace.probe_unverifiable,
    )


def _check_memory(trace: Trace, target: Target, memory_bytes: int) -> None:
    inputs = sum(t.nbytes for t in trace.inputs)
    state = sum(parameter_bytes(p) for p in trace.parameters)
    outputs = sum(t.nbytes for t in trace.outputs)
    largest = max((o.bytes_read + o.bytes_written for o in trace.operators), default=0)
    need = max(inputs + state + outputs, largest)
    if need > memory_bytes:
        raise TaskError(
            f"One call of the reference needs at least {quantity(need, 'B')}, and {target} has "
            f"{quantity(memory_bytes, 'B')}: inputs {quantity(inputs, 'B')}, parameters {quantity(state, 'B')}, outputs "
            f"{quantity(outputs, 'B')}, largest operator {quantity(largest, 'B')}.",
            todo="Reduce the sizes in get_inputs() or get_init_inputs(), the batch size first.",
        )
