"""Calls under 10 us on a GPU: the work itself apart from what launching it costs.

A single call between two events is known to about half a microsecond, and back-to-back launches may wait for the host. A CUDA
graph of many calls has neither: the judge has the runner capture the candidate's calls, replays the graph in two lengths,
and takes the slope, by the runner's events and by its own clock.
"""

from dataclasses import dataclass
from typing import Any

from hiera_mcp.sandbox.child.clocks import Slope
from hiera_mcp.sandbox.child.failure import CandidateFailure
from hiera_mcp.sandbox.child.measure import CASE, Course
from hiera_mcp.sandbox.child.peer import RunnerLost, RunnerTimeout
from hiera_mcp.sandbox.child.reference import Reference
from hiera_mcp.sandbox.child.verify import WrongOutput
from hiera_mcp.sandbox.child.workbench import Workbench

SHORT_S = 10e-6
CALLS = 20
"""Calls in a graph."""
FEW, MANY = 20, 220
"""Replays of the two lengths."""
PAIRS = 5


@dataclass(frozen=True)
class ShortCall:
    """A ShortCall of the model as plain data, or None where the call is not short; and what could not be measured."""

    found: dict[str, Any] | None = None
    unmeasured: tuple[str, ...] = ()


def short_call(
    reference: Reference, bench: Workbench, course: Course, kind: str, cold_s: float, batches: Slope
) -> ShortCall:
    """Time a short call by graph replay, else by the batches that were made already. Comes last: a candidate that cannot
    be captured may be unusable after the attempt.

    Args:
        kind: `c_abi` or `python`.
        cold_s: the median of its single calls.
        batches: its slope over batches.
    """
    if reference.device == "cpu" or cold_s >= SHORT_S:
        return ShortCall()
    try:
        if kind == "python":
            raise CandidateFailure("a ModelNew is not captured")
        device = replayed(reference, bench, course)
    except (CandidateFailure, RunnerLost, RunnerTimeout, WrongOutput) as e:
        why = f"device time by graph replay: {e}; what is given is the time of batches, with their launches"
        return ShortCall(_as_data("batches", None, batches.claimed), (why,))
    return ShortCall(_as_data("graph_replay", device, batches.claimed))


def replayed(reference: Reference, bench: Workbench, course: Course) -> float:
    """Seconds per call on the device, warm.

    Raises:
        CandidateFailure: it cannot be captured, or the clocks disagree on the replays.
        WrongOutput: what the graph computes is not what a call computes.
        RunnerLost, RunnerTimeout: see Peer.ask.
    """
    inputs = reference.draw_inputs(CASE)
    for s in range(bench.sets):
        bench.put(CASE, s, inputs)
    expected, _ = course.reference_call(inputs, flush=False)
    slopes = [_slope(bench) for _ in range(PAIRS)]
    for s in range(bench.sets):
        course.check_outputs(s, expected, inputs)
    best = min(slopes, key=lambda slope: slope.distance)
    if not best.agrees:
        raise CandidateFailure(
            f"the runner claims {best.claimed * 1e6:.3g} us per replayed call, the judge's clock outside says "
            f"{best.outside * 1e6:.3g} us"
        )
    return best.claimed


def _slope(bench: Workbench) -> Slope:
    sets = [n % bench.sets for n in range(CALLS)]
    few, wall_few = bench.replay(CASE, sets, FEW)
    many, wall_many = bench.replay(CASE, sets, MANY)
    more = (MANY - FEW) * CALLS
    return Slope(max(many - few, 0.0) / more, max(wall_many - wall_few, 0.0) / more, 0.0)


def _as_data(method: str, device: float | None, launched: float) -> dict[str, Any]:
    launch = None if device is None else max(launched - device, 0.0)
    return {"method": method, "device": device, "launched": launched, "launch": launch}
