"""What the planner wants to know about a workload, from a trace: operators, traffic, shares, launches."""

from collections.abc import Sequence
from itertools import pairwise

from hiera_mcp.contracts.chains import chains_of
from hiera_mcp.contracts.coverage import coverage_of
from hiera_mcp.contracts.depth import depth_of
from hiera_mcp.contracts.flow import Flow
from hiera_mcp.contracts.reductions import reductions_of
from hiera_mcp.contracts.reuse import reuse_of
from hiera_mcp.contracts.units import MATRIX_KINDS, matrix_unit, tensor_cores, vector_unit
from hiera_mcp.model.contract import ITEM_BYTES, Features, Operator, Precision
from hiera_mcp.model.hardware import Peaks
from hiera_mcp.model.space import Target, is_cpu
from hiera_mcp.model.work import Trace, TracedOperator, TracedParameter


def features_of(trace: Trace, target: Target, precision: Precision, peaks: Peaks, allow_tf32: bool) -> Features:
    """The workload features of a trace. FLOPs and bytes are sums over one call."""
    launched = [o for o in trace.operators if not o.is_view]
    flops = sum(o.count * o.flops for o in launched)
    compulsory = compulsory_bytes(trace)
    legal, reason = tensor_cores(target, precision, allow_tf32, matrix_flops(trace))
    flow = Flow(trace, [0.0 if o.is_view else _seconds(o, precision, peaks, allow_tf32) for o in trace.operators])
    libraries, uncovered = coverage_of(flow, target)
    unused = [n for n, live in enumerate(flow.live) if not live]
    return Features(
        operators=operators_of(launched, precision, peaks, allow_tf32),
        flops=flops,
        compulsory_bytes=compulsory,
        unfused_bytes=float(sum(o.count * (o.bytes_read + o.bytes_written) for o in launched)),
        arithmetic_intensity=flops / compulsory if compulsory else 0.0,
        launches=launches_of(flow, target),
        parameter_bytes=sum(parameter_bytes(p) for p in trace.parameters),
        tensor_core_legal=legal,
        tensor_core_reason=reason,
        depth=depth_of(trace),
        chains=chains_of(flow),
        reductions=reductions_of(trace),
        reuse=reuse_of(flow),
        libraries=libraries,
        uncovered_share=uncovered,
        unused=tuple(dict.fromkeys(flow.name(n) for n in unused)),
        unused_share=flow.share(unused),
    )


def launches_of(flow: Flow, target: Target) -> int:
    """Kernels that eager execution launches, one per operator. On CUDA each run of a recurrent module counts as
    one: PyTorch hands it to cuDNN as a whole, whose own number of kernels depends on its sizes."""
    if is_cpu(target):
        return sum(o.count for o in flow.trace.operators if not o.is_view)
    modules = [flow.recurrent(call) for call in flow.trace.calls]
    return sum(m is None or m != before for before, m in pairwise([None, *modules]))


def parameter_bytes(parameter: TracedParameter) -> int:
    n = ITEM_BYTES[parameter.dtype]
    for d in parameter.shape:
        n *= d
    return n


def compulsory_bytes(trace: Trace) -> float:
    """Bytes that a fully fused kernel must move: what forward() reads of inputs and state, once, and all outputs."""
    whole = {f"inputs.{t.name}": t.nbytes for t in trace.inputs}
    whole |= {f"state.{p.path}": parameter_bytes(p) for p in trace.parameters}
    read = whole if trace.touched_bytes is None else {k: trace.touched_bytes.get(k, 0) for k in whole}
    return float(sum(read.values()) + sum(t.nbytes for t in trace.outputs))


def matrix_flops(trace: Trace) -> float:
    """FLOPs of operators that are matrix products at heart."""
    return sum(o.count * o.flops for o in trace.operators if o.kind in MATRIX_KINDS)


def operators_of(
    launched: Sequence[TracedOperator], precision: Precision, peaks: Peaks, allow_tf32: bool
) -> tuple[Operator, ...]:
    """Calls grouped by operator, the most expensive first. Shares come from a roofline estimate of each call."""
    groups: dict[str, list[TracedOperator]] = {}
    for o in launched:
        groups.setdefault(o.name, []).append(o)
    seconds = {
        n: sum(o.count * _seconds(o, precision, peaks, allow_tf32) for o in calls) for n, calls in groups.items()
    }
    total = sum(seconds.values()) or 1.0
    ranked = sorted(groups, key=lambda n: -seconds[n])
    return tuple(_operator(name, groups[name], seconds[name] / total) for name in ranked)


def _operator(name: str, calls: Sequence[TracedOperator], share: float) -> Operator:
    return Operator(
        name=name,
        kind=calls[0].kind,
        count=sum(o.count for o in calls),
        flops=sum(o.count * o.flops for o in calls),
        bytes=float(sum(o.count * (o.bytes_read + o.bytes_written) for o in calls)),
        share=share,
    )


def _seconds(o: TracedOperator, precision: Precision, peaks: Peaks, allow_tf32: bool) -> float:
    matrix = o.kind in MATRIX_KINDS
    unit = matrix_unit(peaks, precision, allow_tf32) if matrix else vector_unit(peaks, precision)
    return max((o.bytes_read + o.bytes_written) / peaks.bandwidth, o.flops / unit.flops)
