"""What a request costs beside the calls that it asks for, known before the candidate is loaded: nothing of it can answer late
on purpose then. On `cpu`."""

from collections.abc import Sequence
from dataclasses import dataclass

from hiera_mcp.sandbox.child.measure import CASE
from hiera_mcp.sandbox.child.stopwatch import CudaStopwatch, HostStopwatch
from hiera_mcp.sandbox.child.timing import median
from hiera_mcp.sandbox.child.workbench import Workbench

SINGLE, FULL = 9, 5


@dataclass(frozen=True)
class Rehearsal:
    """Seconds of requests that handed over inputs and called nothing."""

    single: Sequence[float]
    """Of one set, with cold caches."""
    full: Sequence[float]
    """Of all sets."""
    sets: int

    def cost(self, count: int) -> float:
        """Seconds for so many sets."""
        one, full = median(self.single), median(self.full)
        return one + max(0.0, full - one) * (count - 1) / max(1, self.sets - 1)


def rehearse(bench: Workbench, watch: HostStopwatch | CudaStopwatch) -> Rehearsal:
    """Both kinds of requests, as those that will be timed."""
    single: list[float] = []
    for _ in range(SINGLE):
        watch.flush()
        single.append(bench.rehearse(CASE, watch.flush_by_runner))
    full = [bench.rehearse(CASE, watch.flush_by_runner, bench.sets) for _ in range(FULL)]
    return Rehearsal(single, full, bench.sets)
