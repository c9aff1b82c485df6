"""What bounds a candidate, and where it stands under its roofs. Pure."""

from collections.abc import Sequence

from hiera_mcp.model.contract import Contract
from hiera_mcp.model.profile import Bottleneck, Launch, Roofline
from hiera_mcp.sandbox.profiling.call_signs import gaps
from hiera_mcp.sandbox.profiling.facts import HIGH, TaskFacts

MOSTLY_GAPS = 0.5
"""From this share of a call's time outside its kernels on, launching bounds it."""
TINY_SECONDS = 3e-6
"""A kernel below this is hardly more than its launch."""


def bottleneck(launches: Sequence[Launch], task: TaskFacts) -> Bottleneck:
    """What bounds the call: launching, or what bounds the kernels that take most of its time."""
    if not launches:
        return "unknown"
    share = gaps(launches, task)
    if (share is not None and share >= MOSTLY_GAPS) or all((x.seconds or 1) < TINY_SECONDS for x in launches):
        return "launch"
    weight: dict[Bottleneck, float] = {}
    for launch in launches:
        kind = of_kernel(launch)
        weight[kind] = weight.get(kind, 0.0) + launch.share
    return max(weight, key=lambda kind: weight[kind])


def of_kernel(launch: Launch) -> Bottleneck:
    """By NVIDIA's rule: the busier of arithmetic and memory when it is at 60 % of its peak; below that, waiting."""
    sm, memory = launch.value("sm_pct"), launch.value("memory_pct")
    if sm is None or memory is None:
        return "unknown"
    if max(sm, memory) < HIGH:
        return "latency"
    return "memory" if memory >= sm else "compute"


def roofline(contract: Contract, seconds: float | None, moved_bytes: float | None) -> Roofline | None:
    """Where the candidate stands; None when there is no time, or the task has no arithmetic that is counted."""
    floor, features = contract.floor, contract.features
    if not seconds or features.compulsory_bytes <= 0 or features.flops <= 0 or floor.seconds <= 0:
        return None
    return Roofline(
        seconds=seconds,
        floor_seconds=floor.seconds,
        bound=floor.bound,
        intensity=features.flops / features.compulsory_bytes,
        attainable_flops=features.flops / floor.seconds,
        achieved_flops=features.flops / seconds,
        bandwidth=floor.bandwidth,
        peak_flops=floor.peak_flops,
        moved_bytes=moved_bytes,
        moved_reason="" if moved_bytes is not None else "DRAM's counters of all launches were not read",
    )
