"""Interleaved timing of the eager reference (here) and the candidate (in the runner), on the same inputs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hiera_mcp.sandbox.child.comparison import comparison_of
from hiera_mcp.sandbox.child.conditions import Conditions
from hiera_mcp.sandbox.child.record import Record
from hiera_mcp.sandbox.child.reference import Reference
from hiera_mcp.sandbox.child.samples import Leeway, Sample, choose_places, take, whole, wrong_elements
from hiera_mcp.sandbox.child.stopwatch import CudaStopwatch, HostStopwatch
from hiera_mcp.sandbox.child.timing import rounds_for
from hiera_mcp.sandbox.child.verify import Progress, WrongOutput
from hiera_mcp.sandbox.child.workbench import LOOKS, Workbench

BUDGET_S = 2.0
"""Seconds for the rounds, as long as the least number of rounds fits."""
LEAST, MOST, LEAST_WHEN_SLOW = 7, 41, 3
SLOW_ROUND_S = 10.0
SHORTEST_S = 1e-8
"""What is left at least of a time when the clock's own overhead is taken off it."""
DELIVERIES = 5
CASE = 0
"""The contract's first case is timed; features and floor are its too."""


_STALE = "although the calls before the timing were right: the result does not follow the new inputs"


@dataclass
class Samples:
    """Raw times in seconds."""

    candidate: list[float] = field(default_factory=list[float])
    """Claimed, two per round, as the clock reads: with `overhead`."""
    reference: list[float] = field(default_factory=list[float])
    outside: list[float] = field(default_factory=list[float])
    """The judge's clock around each request of a candidate's call."""
    empty: list[float] = field(default_factory=list[float])
    """The same around requests that call nothing."""
    claimed: list[float] = field(default_factory=list[float])
    """What was claimed, where `candidate` was raised to what the judge's clock bears out."""
    rehearsed: list[float] = field(default_factory=list[float])
    """The same, inputs handed over too, before the candidate was loaded; on `cpu`."""
    delivery: float = 0.0
    """What bringing a ModelNew's results into our outputs takes, which is outside the claim: measured by the judge."""
    warm_delivery: float = 0.0
    """The same with a warm cache, between calls that follow each other."""
    together: float = 0.0
    """Seconds by the judge's clock of one request for all of `candidate`; of KernelBench's protocol on `cpu` alone."""
    overhead: float = 0.0
    """What the clock of one call reads around nothing; `net` takes it off."""
    ratios: list[float] = field(default_factory=list[float])
    """Reference / candidate, one per round, both net."""

    def net(self, times: Sequence[float]) -> list[float]:
        """Times without what the clock reads around nothing."""
        return [max(t - self.overhead, SHORTEST_S) for t in times]


class Course:
    """Runs rounds on fresh inputs. Each round: reference, candidate, candidate, reference (ABBA), all cold."""

    def __init__(
        self,
        reference: Reference,
        bench: Workbench,
        watch: HostStopwatch | CudaStopwatch,
        record: Record,
        mutates: bool,
        budget_s: float = BUDGET_S,
        conditions: Conditions | None = None,
    ) -> None:
        self._reference = reference
        self._bench = bench
        self._watch = watch
        self._record = record
        self._mutates = mutates
        self._budget_s = budget_s
        self.conditions = conditions or Conditions(reference.device)
        self._tolerance = reference.contract["tolerance"]
        self._comparison = comparison_of(reference)
        outputs = range(len(reference.contract["cases"][CASE]["outputs"]))
        rule = self._tolerance
        self._leeways = [Leeway(record.slack.get((CASE, i), 1.0), (CASE, i) in record.sliced, rule) for i in outputs]

    def run(self, progress: Progress) -> Samples:
        """As many rounds as fit into the budget; the first one warms up and is not counted.

        Raises:
            WrongOutput: a timed call gave another result than the reference.
        """
        samples = Samples(overhead=self._watch.overhead())
        self.conditions.look()
        start = time.perf_counter()
        self.round(Samples())
        seconds = time.perf_counter() - start
        least = LEAST if seconds < SLOW_ROUND_S else LEAST_WHEN_SLOW
        rounds = rounds_for(seconds, self._budget_s, least, MOST)
        for n in range(rounds):
            progress(f"time: round {n + 1} of {rounds}", 0.5 + 0.4 * n / rounds)
            self.round(samples)
            self.conditions.look()
        return samples

    def round(self, samples: Samples) -> None:
        """One ABBA round with new inputs in every set."""
        first = self._reference.draw_inputs(CASE)
        expected_first, a1 = self.reference_call(first, flush=True)
        b1 = self.candidate_call(0, first, samples)
        second = self._reference.draw_inputs(CASE)
        b2 = self.candidate_call(self._bench.sets - 1, second, samples)
        expected_second, a2 = self.reference_call(second, flush=True)
        for (_, sample), expected, inputs in ((b1, expected_first, first), (b2, expected_second, second)):
            self.check(sample, expected, inputs)
        samples.candidate += [b1[0], b2[0]]
        samples.reference += [a1, a2]
        samples.ratios.append(sum(samples.net([a1, a2])) / sum(samples.net([b1[0], b2[0]])))
        self.empty_call(samples)

    def reference_call(self, inputs: list[Any], flush: bool) -> tuple[list[Any], float]:
        """Outputs and seconds of one call of the eager reference, on copies where it changes its inputs."""
        inputs = [x.clone() for x in inputs] if self._mutates else inputs
        return self._reference.timed(CASE, inputs, lambda call: self._watch.time(call, flush))

    def candidate_call(self, s: int, inputs: list[Any], samples: Samples) -> tuple[float, Sample]:
        """Claimed seconds, and a sample of the outputs. The last values come right before the call: what was computed
        from the buffers earlier is wrong."""
        self._bench.put(CASE, s, inputs)
        withheld = self._bench.withhold(CASE, s)
        outputs = self._bench.outputs(CASE, s)
        places = choose_places(outputs)
        claimed, seconds = self._request([s], "each", lambda: self._bench.release(CASE, s, withheld))
        sample = self.look(outputs, places)
        samples.outside.append(seconds)
        return claimed[0], sample

    def empty_call(self, samples: Samples) -> None:
        """One request that calls nothing."""
        _, seconds = self._request([0], "empty")
        samples.empty.append(seconds)

    def _request(
        self, sets: list[int], mode: str, before: Callable[[], None] = lambda: None
    ) -> tuple[list[float], float]:
        self._watch.flush()
        before()
        self._watch.sync()
        return self._bench.run(CASE, sets, mode, flush=self._watch.flush_by_runner)

    def fresh_calls(self, count: int) -> float:
        """Seconds of one request for so many calls, each on a set of its own with new inputs; their outputs are checked.

        Raises:
            WrongOutput: they are not right.
        """
        inputs = [self._reference.draw_inputs(CASE) for _ in range(count)]
        for s, values in enumerate(inputs):
            self._bench.put(CASE, s, values)
        _, seconds = self._bench.run(CASE, range(count), "batch")
        for s, values in enumerate(inputs):
            self.check_outputs(s, self.reference_call(values, flush=False)[0], values)
        return seconds

    def look(self, outputs: Sequence[Any], places: list[Any]) -> Sample:
        """What is kept of a timed call's outputs: some elements, or all where the user's function judges them."""
        return take(outputs, places) if self._comparison is None else whole(outputs)

    def check(self, sample: Sample, expected: list[Any], inputs: list[Any]) -> None:
        """Compare what was kept of a timed call with the reference's outputs for the same inputs.

        Raises:
            WrongOutput: it disagrees.
        """
        self._record.sampled_calls += 1
        if self._comparison is not None:
            if self._comparison.timed_is_wrong(CASE, inputs, sample.values, expected):
                raise WrongOutput(f"{self._comparison.name}() refuses the outputs of a timed call, {_STALE}")
            return
        wrong = wrong_elements(sample, expected, self._leeways)
        if wrong:
            sampled = sum(len(v) for v in sample.values)
            raise WrongOutput(f"a timed call gave {wrong} wrong elements among {sampled} sampled ones, {_STALE}")

    def check_outputs(self, s: int, expected: list[Any], inputs: list[Any]) -> None:
        """Compare what a set's outputs hold now, at random places, with the reference's for the same inputs.

        Raises:
            WrongOutput: they disagree.
        """
        outputs = self._bench.outputs(CASE, s)
        self.check(self.look(outputs, choose_places(outputs)), expected, inputs)

    def delivery(self, flush: bool) -> float:
        """Seconds that a copy of all outputs takes here, cold or not, when nothing disturbs it."""
        outputs = self._bench.outputs(CASE, 0)
        copies = [t.clone() for t in outputs]
        places = [p[:LOOKS] for p in choose_places(outputs)]

        def copy() -> None:
            for mine, output, place in zip(copies, outputs, places, strict=True):
                output.take(place).tolist()  # as the runner does, see Workbench.run
                mine.copy_(output)

        return min(self._watch.time(copy, flush)[1] for _ in range(DELIVERIES))

    def damage(self) -> None:
        """After the last round: guard zones, inputs and parameters.

        Raises:
            WrongOutput: something was changed.
        """
        found = [line for s in range(self._bench.sets) for line in self._bench.damage(CASE, s)]
        self._record.findings += found
        if found:
            raise WrongOutput("during the timed calls: " + "; ".join(found))


def kernelbench(course: Course, reference: Reference, bench: Workbench) -> Samples:
    """KernelBench's protocol: 3 warm-up calls, 100 timed ones, the same inputs, warm. See kernelbench `timing.py`."""
    warmups, trials = 3, 100
    inputs = reference.draw_inputs(CASE)
    bench.put(CASE, 0, inputs)
    expected: list[Any] = []
    eager: list[float] = []
    for _ in range(warmups + trials):
        expected, seconds = course.reference_call(inputs, flush=False)
        eager.append(seconds)
    places = choose_places(bench.outputs(CASE, 0))
    bench.run(CASE, [0] * warmups, "each")
    candidate, seconds = bench.run(CASE, [0] * trials, "each")
    course.check(course.look(bench.outputs(CASE, 0), places), expected, inputs)
    samples = Samples(candidate=candidate, reference=eager[warmups:], ratios=_ratios(eager[warmups:], candidate))
    if reference.device == "cpu":  # one request for all: what it costs beside the calls is little for each
        samples.together, samples.delivery = seconds, course.delivery(flush=True)
        samples.warm_delivery = course.delivery(flush=False)
    return samples


def _ratios(reference: Sequence[float], candidate: Sequence[float]) -> list[float]:
    return [r / max(c, 1e-9) for r, c in zip(reference, candidate, strict=True)]
