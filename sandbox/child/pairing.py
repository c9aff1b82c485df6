"""Two candidates timed against each other in one session: on the same inputs, in turns, each in a runner of its own.

What two evaluations cannot cancel (the machine's state, another draw of inputs, other neighbours) is the same for both here.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hiera_mcp.sandbox.child import clocks
from hiera_mcp.sandbox.child.measure import CASE, Course, Samples
from hiera_mcp.sandbox.child.reference import Reference
from hiera_mcp.sandbox.child.timing import Interval, median, median_interval
from hiera_mcp.sandbox.child.verify import Progress
from hiera_mcp.sandbox.child.workbench import Workbench

LOOKS = (11, 21, 41, 81, 121)
"""Numbers of rounds after which it is asked whether the difference is clear; the last one is the greatest."""
CONFIDENCE = 0.99
"""Of the interval at each look: more than 0.95, since there are several."""
BUDGET_S = 6.0
"""Seconds for the rounds, as long as the first look is reached."""
TOLD, SAME = 0.01, 0.01
"""Stop when the interval lies wholly beyond this relative difference, or wholly within it."""


@dataclass
class Side:
    """One of the two candidates."""

    name: str
    bench: Workbench
    course: Course
    kind: str
    samples: Samples = field(default_factory=Samples)


class Pairing:
    """Rounds of two candidates: this, other, other, this in one, and the other way about in the next; all calls cold."""

    def __init__(
        self,
        reference: Reference,
        this: Side,
        other: Side,
        budget_s: float = BUDGET_S,
        on_turn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """
        Args:
            on_turn: hears the name of the side whose turn it is, so that a failure can be told whose it is.
        """
        self._reference = reference
        self._sides = (this, other)
        self._budget_s = budget_s
        self._on_turn = on_turn
        self.ratios: list[float] = []
        """Time of the other / time of this one, one per round."""

    def run(self, progress: Progress) -> Interval:
        """As many rounds as it takes to tell, or as fit into the budget; the ratio's median with its interval.

        Raises:
            WrongOutput, CandidateFailure, RunnerLost, RunnerTimeout: one of the two fails.
        """
        self.round(keep=False)
        start = time.perf_counter()
        interval: Interval = {}
        while len(self.ratios) < LOOKS[-1] and (len(self.ratios) < LOOKS[0] or self._time_left(start)):
            progress(f"compare: round {len(self.ratios) + 1}", 0.2 + 0.7 * len(self.ratios) / LOOKS[-1])
            self.round()
            if len(self.ratios) in LOOKS:
                interval = median_interval(self.ratios, CONFIDENCE)
                if decided(interval):
                    return interval
        return median_interval(self.ratios, CONFIDENCE)

    def _time_left(self, start: float) -> bool:
        return time.perf_counter() - start < self._budget_s

    def round(self, keep: bool = True) -> None:
        """One round on two new draws of inputs."""
        first, second = self._sides if len(self.ratios) % 2 == 0 else self._sides[::-1]
        times: dict[str, list[float]] = {side.name: [] for side in self._sides}
        for turn in ((first, second), (second, first)):
            inputs = self._reference.draw_inputs(CASE)
            expected, _ = first.course.reference_call(inputs, flush=False)
            for side in turn:
                times[side.name].append(self._call(side, inputs, expected))
        if keep:
            this, other = (min(times[side.name]) for side in self._sides)  # what disturbs a call only makes it longer
            self.ratios.append(other / this)

    def _call(self, side: Side, inputs: list[Any], expected: list[Any]) -> float:
        """Net seconds of one call, checked."""
        self._on_turn(side.name)
        s = len(side.samples.candidate) % side.bench.sets
        claimed, sample = side.course.candidate_call(s, inputs, side.samples)
        side.course.check(sample, expected, inputs)
        side.course.empty_call(side.samples)
        side.samples.candidate.append(claimed)
        return side.samples.net([claimed])[0]


def decided(interval: Interval) -> bool:
    """Whether more rounds would change nothing: there is a difference, or none that matters."""
    low, high = interval["low"], interval["high"]
    apart = low > 1 + TOLD or high < 1 / (1 + TOLD)
    return apart or (low > 1 / (1 + SAME) and high < 1 + SAME)


def doubts(side: Side, floor: clocks.MemoryFloor, device: str) -> list[str]:
    """What is not credible about the claims of one side; empty when all clocks agree.

    Raises:
        WrongOutput, CandidateFailure, RunnerLost, RunnerTimeout: it fails.
    """
    slope = clocks.measure_slope(side.bench, median(side.samples.candidate))
    side.course.damage()
    side.samples.delivery = side.course.delivery() if side.kind == "python" else 0.0
    return [f"{side.name}: {line}" for line in clocks.disagreements(slope, side.samples, floor, device)]
