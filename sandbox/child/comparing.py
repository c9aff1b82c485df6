"""The course of a comparison: two candidates are loaded, called once each for a check, and timed against each other."""

from collections.abc import Callable, Sequence
from typing import Any

from hiera_mcp.sandbox.child import clocks
from hiera_mcp.sandbox.child.conditions import Conditions
from hiera_mcp.sandbox.child.failure import CandidateFailure
from hiera_mcp.sandbox.child.measure import Course
from hiera_mcp.sandbox.child.pairing import Pairing, Side, doubts, unequal
from hiera_mcp.sandbox.child.peer import RunnerLost, RunnerTimeout
from hiera_mcp.sandbox.child.record import Record
from hiera_mcp.sandbox.child.reference import Reference
from hiera_mcp.sandbox.child.stopwatch import CudaStopwatch, HostStopwatch
from hiera_mcp.sandbox.child.timing import median
from hiera_mcp.sandbox.child.verify import Progress, Verifier, WrongOutput
from hiera_mcp.sandbox.child.workbench import Workbench

NAMES = ("this candidate", "the other candidate")


class Comparing:
    """Compares the candidates behind two workbenches.

    Args:
        kinds: `c_abi` or `python`, of each.
        interface: gives what a runner may know, by the candidate's kind.
    """

    def __init__(
        self,
        reference: Reference,
        benches: Sequence[Workbench],
        kinds: Sequence[str],
        interface: Callable[[str], dict[str, Any]],
        watch: HostStopwatch | CudaStopwatch,
        floor: clocks.MemoryFloor,
        budget_s: float,
    ) -> None:
        self._reference = reference
        self._benches = benches
        self._kinds = kinds
        self._interface = interface
        self._watch = watch
        self._floor = floor
        self._budget_s = budget_s
        self._at = 0

    def run(self, progress: Progress) -> dict[str, Any]:
        """A PairReport of the model as plain data."""
        try:
            return self._compared(progress)
        except (WrongOutput, CandidateFailure, RunnerTimeout, RunnerLost) as e:
            return {"reason": f"{NAMES[self._at]}: {e}"}

    def _compared(self, progress: Progress) -> dict[str, Any]:
        self._reference.draw_parameters()
        conditions = Conditions(self._reference.device)
        overhead = self._watch.overhead()
        this, other = (self._side(n, conditions, overhead, progress) for n in range(2))
        conditions.look()
        rounds = Pairing(self._reference, this, other, self._budget_s, on_turn=self._turn)
        rounds.run(progress)
        conditions.look()
        found = self._doubts(this, other)
        if found:
            return {"reason": "; ".join(found)}
        return {
            "ratio": rounds.ratio(),
            "rounds": rounds.rounds,
            "this_s": median(this.samples.net(this.samples.candidate)),
            "other_s": median(other.samples.net(other.samples.candidate)),
            "ran_at": conditions.in_words(),
        }

    def _doubts(self, this: Side, other: Side) -> list[str]:
        found: list[str] = []
        for self._at, side in enumerate((this, other)):
            found += doubts(side, self._floor, self._reference.device)
        return found + unequal(this, other, self._reference.device)

    def _turn(self, name: str) -> None:
        self._at = NAMES.index(name)

    def _side(self, n: int, conditions: Conditions, overhead: float, progress: Progress) -> Side:
        """Load one candidate, and check one call of it."""
        self._at = n
        bench, record = self._benches[n], Record()
        progress(f"load {NAMES[n]}", 0.1 * n)
        bench.load(self._kinds[n], self._interface(self._kinds[n]))
        verifier = Verifier(self._reference, bench, record, progress)
        verifier.verify_once()
        course = Course(self._reference, bench, self._watch, record, verifier.reference_mutates, conditions=conditions)
        side = Side(NAMES[n], bench, course, self._kinds[n])
        side.samples.overhead = overhead
        return side
