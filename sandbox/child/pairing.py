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
BUDGET_S = 4.0
"""Seconds for the rounds, as long as the first look is reached; twice as much while the interval is WIDE: on a busy host."""
WIDE = 0.04
IDLE_LOOKS = 3
UNEQUAL, UNEQUAL_S = 0.05, {"cpu": 50e-6, "cuda": 10e-6}
"""What one side's claims may leave out more than the other's: of a call, and in seconds. On `cpu` handing the inputs over
takes part of that, and may take longer in one runner than in the other."""
TOLD, SAME = 0.01, 0.01
"""Stop when the interval lies wholly beyond this relative difference, or wholly within it."""


@dataclass
class Side:
    """One of the two candidates. Two calls a round; those of the first round warm up."""

    name: str
    bench: Workbench
    course: Course
    kind: str
    samples: Samples = field(default_factory=Samples)

    def beside(self) -> list[float]:
        """Seconds per round that the judge's clock has seen beside the claim, in the call that it has seen end sooner."""
        rows = zip(self.samples.outside, self.samples.candidate, strict=True)
        calls = [(outside, outside - claimed - self.samples.delivery) for outside, claimed in rows][2:]
        return [min(calls[n : n + 2])[1] for n in range(0, len(calls), 2)]

    def times(self) -> list[float]:
        """Net seconds per round: the lesser of its two calls, since what disturbs a call only makes it longer."""
        net = self.samples.net(self.samples.candidate)[2:]
        return [min(net[n : n + 2]) for n in range(0, len(net), 2)]


class Pairing:
    """Rounds of two candidates: this, other, other, this in one, and the other way about in the next; all calls cold.

    Args:
        on_turn: hears the name of the side whose turn it is, so that a failure can be told whose it is.
    """

    def __init__(
        self,
        reference: Reference,
        this: Side,
        other: Side,
        budget_s: float = BUDGET_S,
        on_turn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._reference = reference
        self._sides = (this, other)
        self._budget_s = budget_s
        self._on_turn = on_turn
        self.rounds = 0

    def run(self, progress: Progress) -> None:
        """As many rounds as it takes to tell, or as fit into the budget.

        Raises:
            WrongOutput, CandidateFailure, RunnerLost, RunnerTimeout: one of the two fails.
        """
        self._round()
        start = time.perf_counter()
        while self.rounds < LOOKS[-1] and (self.rounds < LOOKS[0] or self._goes_on(time.perf_counter() - start)):
            progress(f"compare: round {self.rounds + 1}", 0.2 + 0.7 * self.rounds / LOOKS[-1])
            self._round()
            self.rounds += 1
            if self.rounds in LOOKS and decided(self.ratio()):
                return

    def _goes_on(self, seconds: float) -> bool:
        """Whether there is time for another round after so many seconds."""
        if seconds < self._budget_s:
            return True
        ratio = self.ratio()
        return seconds < 2 * self._budget_s and ratio["high"] > (1 + WIDE) * ratio["low"]

    def ratio(self) -> Interval:
        """Time of the other / time of this one: the median of the rounds, with its interval."""
        this, other = (side.times() for side in self._sides)
        return median_interval([b / a for a, b in zip(this, other, strict=True)], CONFIDENCE)

    def _round(self) -> None:
        """One round on two new draws of inputs."""
        first, second = self._sides if self.rounds % 2 == 0 else self._sides[::-1]
        for turn in ((first, second), (second, first)):
            inputs = self._reference.draw_inputs(CASE)
            expected, _ = first.course.reference_call(inputs, flush=False)
            for side in turn:
                self._call(side, inputs, expected)

    def _call(self, side: Side, inputs: list[Any], expected: list[Any]) -> None:
        """One call, checked."""
        self._on_turn(side.name)
        s = len(side.samples.candidate) % side.bench.sets
        claimed, sample = side.course.candidate_call(s, inputs, side.samples)
        side.course.check(sample, expected, inputs)
        if self._reference.device != "cpu" and len(side.samples.empty) < LOOKS[0]:  # for the check of single calls
            side.course.empty_call(side.samples)
        side.samples.candidate.append(claimed)


def decided(interval: Interval) -> bool:
    """Whether more rounds would change nothing: there is a difference, or none that matters."""
    low, high = interval["low"], interval["high"]
    apart = low > 1 + TOLD or high < 1 / (1 + TOLD)
    return apart or (low > 1 / (1 + SAME) and high < 1 + SAME)


def doubts(side: Side, floor: clocks.MemoryFloor, device: str) -> list[str]:
    """What is not credible about the claims of one side by itself; empty when all clocks agree.

    Raises:
        WrongOutput, CandidateFailure, RunnerLost, RunnerTimeout: it fails.
    """
    slope = clocks.measure_slope(side.bench, median(side.samples.candidate))
    side.course.damage()
    side.samples.delivery = side.course.delivery(flush=True) if side.kind == "python" else 0.0
    found = _left_running(side.bench) + clocks.disagreements(slope, side.samples, floor, device)
    return [f"{side.name}: {line}" for line in found]


def _left_running(bench: Workbench) -> list[str]:
    """What runs while nothing is asked, in each of several looks: on a busy host a runner that was let go may still be on its
    way to rest in one of them."""
    looks = [bench.left_running()]
    while looks[-1] and len(looks) < IDLE_LOOKS:
        looks.append(bench.left_running())
    return looks[-1:] if looks[-1] else []


def unequal(this: Side, other: Side, device: str) -> list[str]:
    """Whether one side's claims leave out more than the other's do, by the judge's clock, which sees both in turns.

    A busy host delays the answers of both alike; a claim that is too small shows as time beside it, in that side alone.
    """
    more = [b - a for a, b in zip(this.beside(), other.beside(), strict=True)]
    interval = median_interval(more, CONFIDENCE)
    shorter = min(median(side.samples.candidate) for side in (this, other))
    allowed = UNEQUAL * shorter + UNEQUAL_S["cpu" if device == "cpu" else "cuda"]
    found = [(other, interval["low"]), (this, -interval["high"])]
    return [
        f"{side.name}: beside its claims the judge's clock sees at least {seconds * 1e6:.4g} us per call more than beside "
        f"those of its rival (allowed {allowed * 1e6:.4g} us)"
        for side, seconds in found
        if seconds > allowed
    ]
