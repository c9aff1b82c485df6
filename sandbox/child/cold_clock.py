"""The judge's own clock on cold calls on a GPU.

Beside a request, one call is too short for the judge's clock to tell its time. So many calls are queued, each behind a flush
of its own as when they are timed one by one, in two lengths; what the same flushes take without calls is taken off.
"""

import math
import random
from collections.abc import Sequence

from hiera_mcp.sandbox.child.measure import CASE, Course, Samples
from hiera_mcp.sandbox.child.reference import Reference
from hiera_mcp.sandbox.child.stopwatch import FILLS
from hiera_mcp.sandbox.child.timing import median
from hiera_mcp.sandbox.child.workbench import Workbench

PAIRS = 5
FEW, MOST = (4, 8), 200
"""Calls in the shorter batch, a random number of them; and at most so many more in the longer one."""
LENGTH_S = 0.02
"""Aimed length of what the longer batch has more, without the flushes."""
FILL_S = 30e-6
"""About what one writing of the flush takes. The host has to be ahead of the device, or its own time would count: it is when
a flush lasts longer than the host needs for a call. More than that only adds noise."""
TRIES = 3
"""A host that is busy for a while, or needs longer than a call lasts, shows in the time: behind a doubt it is taken again,
with flushes as long as where calls are timed one by one. A false claim is false each time."""
LONG_S = 5e-3
"""From this length on the judge's clock can tell one call by itself."""
RELATIVE, ABSOLUTE_S, PYTHON_S = 0.25, 3e-6, 50e-6
"""Allowed for a claim: calls behind each other wait for the host where they launch much. On an H200 streams that are forked
and joined took 51 us in batches and 38 us alone; a ModelNew, whose Python runs between the flushes, 36 us and 6 us."""


def cold_doubt(
    reference: Reference, bench: Workbench, course: Course, samples: Samples, least_s: float, python: bool
) -> str:
    """What is not credible about the claims for single cold calls, with the numbers; empty where nothing is.

    Args:
        least_s: what a call with warm caches takes by the judge's clock, host and device: a false claim must not make the
            batches endless.
        python: whether the candidate is a ModelNew.

    Raises:
        WrongOutput, CandidateFailure, RunnerLost, RunnerTimeout: see cold_call.
    """
    found, fills = "", min(FILLS, 1 + math.ceil(least_s / FILL_S))
    for _ in range(TRIES):
        found = doubt(samples.candidate, cold_call(reference, bench, course, samples, least_s, fills), python)
        if not found:
            break
        fills = FILLS
    return found


def cold_call(
    reference: Reference, bench: Workbench, course: Course, samples: Samples, least_s: float, fills: int
) -> float:
    """Seconds of one cold call by the judge's clock, the delivery of a ModelNew's results taken off.

    Args:
        least_s: see cold_doubt.
        fills: how often each flush is written.

    Raises:
        WrongOutput: the outputs of the last calls are wrong.
        CandidateFailure, RunnerLost, RunnerTimeout: see Peer.ask.
    """
    call_s = max(median(samples.candidate), least_s, 1e-7)
    if call_s >= LONG_S:
        return max(min(samples.outside) - median(samples.empty) - samples.delivery, 0.0)
    inputs = reference.draw_inputs(CASE)
    for s in range(bench.sets):
        bench.put(CASE, s, inputs)
    more = max(2, min(MOST, math.ceil(LENGTH_S / call_s)))
    seconds = [_pair(bench, random.randint(*FEW), more, fills) for _ in range(PAIRS)]
    expected, _ = course.reference_call(inputs, flush=False)
    for s in range(bench.sets):
        course.check_outputs(s, expected, inputs)
    return max(median(seconds) - samples.delivery, 0.0)


def doubt(claims: Sequence[float], outside: float, python: bool = False) -> str:
    """What is not credible about the claims for single cold calls, with the numbers; empty where nothing is.

    Args:
        claims: in seconds, as the runner's events read.
        outside: what `cold_call` gave.
        python: whether the candidate is a ModelNew.
    """
    claimed = median(claims)
    if claimed >= outside * (1 - RELATIVE) - (PYTHON_S if python else ABSOLUTE_S):
        return ""
    return (
        f"the runner claims {claimed * 1e6:.4g} us for one cold call, the judge's clock outside says {outside * 1e6:.4g} us "
        "for each of many such calls"
    )


def _pair(bench: Workbench, few: int, more: int, fills: int) -> float:
    """Seconds per additional call, without its flush."""
    short, long = ([n % bench.sets for n in range(count)] for count in (few, few + more))

    def longer(calls: bool) -> float:
        return bench.cold_batch(CASE, long, calls, fills) - bench.cold_batch(CASE, short, calls, fills)

    return (longer(calls=True) - longer(calls=False)) / more
