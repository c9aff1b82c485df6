"""Trace → Contract. Pure: runs nothing, reads nothing."""

from collections.abc import Mapping
from types import MappingProxyType

from hiera_mcp.contracts.features import features_of, parameter_bytes
from hiera_mcp.contracts.floor import floor_of, quantity
from hiera_mcp.contracts.names import Namer
from hiera_mcp.contracts.semantics import parameters_of
from hiera_mcp.contracts.tolerance import default_tolerance
from hiera_mcp.errors import TaskError
from hiera_mcp.model.contract import Case, Contract, Degeneracy, Precision, Task, TensorSpec
from hiera_mcp.model.hardware import Peaks
from hiera_mcp.model.space import Target
from hiera_mcp.model.work import Trace


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
        peaks: of the target's GPU, or `cpu_peaks(trace)`.
        memory_bytes: memory of the target; one call of the reference has to fit.
        device: name of the target's GPU, or `cpu`.
        others: devices to give the floor of as well, by name.

    Raises:
        TaskError: one call needs more memory than the target has.
    """
    _check_memory(trace, target, memory_bytes)
    namer = Namer()
    case = case_of(trace, namer)
    return Contract(
        task=task,
        target=target,
        precision=precision,
        parameters=parameters_of(trace, namer),
        cases=(case,),
        tolerance=default_tolerance(precision, allow_tf32),
        features=features_of(trace, target, precision, peaks, allow_tf32),
        floor=floor_of(trace, precision, peaks, allow_tf32, device),
        floors=tuple(floor_of(trace, precision, p, allow_tf32, name) for name, p in others.items()),
        degeneracy=degeneracy_of(trace),
        notes=trace.notes,
    )


def cpu_peaks(trace: Trace) -> Peaks:
    """What the floor of the `cpu` target rests on: rates that the tracer measured on this host."""
    return Peaks(
        bandwidth=trace.copy_bandwidth,
        flops={"fp32": trace.peak_flops},
        basis="measured on this host: the faster of a copy and a read-only sum over as many bytes as the task moves "
        "(1 to 128 MiB, warm), and a float32 matrix product",
    )


def case_of(trace: Trace, namer: Namer) -> Case:
    """The traced shapes as a case, under names that are legal in C++ and unique in the interface."""
    inputs = {t.name: _renamed(t, namer.name(t.name)) for t in trace.inputs}
    outputs = tuple(_renamed(t, namer.name(t.name, "out")) for t in trace.outputs)
    scalars = {s.name: s.model_copy(update={"name": namer.name(s.name)}) for s in trace.scalars}
    names = {old: new.name for old, new in (inputs | scalars).items()}
    return Case(
        name="default",
        inputs=tuple(inputs.values()),
        scalars=tuple(scalars.values()),
        outputs=outputs,
        forward_order=tuple(names[n] for n in trace.forward_order),
        draws=tuple(names[n] for n in trace.draws),
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
