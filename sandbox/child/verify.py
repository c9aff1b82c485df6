"""Verification: run the candidate on many draws and compare every element with the oracle."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from hiera_mcp.sandbox.child.compare import WORST, in_words, same_bits
from hiera_mcp.sandbox.child.comparison import comparison_of, right
from hiera_mcp.sandbox.child.draws import OWN
from hiera_mcp.sandbox.child.record import Record
from hiera_mcp.sandbox.child.reference import Reference, ReferenceFailed
from hiera_mcp.sandbox.child.trials import Trial, Trials
from hiera_mcp.sandbox.child.workbench import Workbench

Progress = Callable[[str, float], None]
"""Receives a message and a fraction of the whole evaluation."""


class WrongOutput(Exception):
    """The candidate's output, or something around it, is not right; `str()` says what was seen."""


class Verifier:
    """Runs the trials of one evaluation.

    Raises (from `verify`):
        WrongOutput: the verdict.
        ReferenceFailed: the reference raises, or is finite in no trial.
        Unverifiable: the task lets a trivial answer pass, whatever the inputs; known only now, or from an earlier candidate.
        CandidateFailure, RunnerLost, RunnerTimeout: see Peer.ask.
    """

    def __init__(self, reference: Reference, bench: Workbench, record: Record, progress: Progress) -> None:
        self._reference = reference
        self._bench = bench
        self._record = record
        self._progress = progress
        self._contract = reference.contract
        self._trials = Trials(reference, record, self._hand_over)
        self._comparison = comparison_of(reference)
        self._prepare_s: list[float | None] = []
        self._settling = False
        self._worst = (0, 0)
        """Case and output of the worst margin."""

    @property
    def reference_mutates(self) -> bool:
        """Whether the reference was seen to change its inputs."""
        return self._trials.reference_mutates

    def verify(self) -> float | None:
        """All trials; returns the seconds that hiera_prepare claims. The parameters are those to time under afterwards."""
        if self._reference.unverifiable:
            raise self._reference.unverifiable
        if self._reference.draws_constants:
            self._record.note("get_inputs() always draws the same values; they are varied by up to 10 %")
        trials = iter(self._trials)
        try:
            for trial in trials:
                self._run(trial)
        except WrongOutput:
            self._settle(trials)
            raise
        self._require_told()
        if self._record.worst:
            self._record.worst["trivial"] = self._trials.told.summary(*self._worst)
        return self._prepare_s[0]

    def verify_once(self) -> None:
        """One trial of the first case, for a run that is neither timed nor judged: the call is as right as it was."""
        self._hand_over()
        trial = self._trials.one(0, 0, f"{OWN} #1", OWN)
        if trial is not None:
            self._run(trial)

    def _hand_over(self) -> None:
        """Give the candidate the reference's parameters."""
        if not self._settling:
            self._prepare_s.append(self._bench.set_parameters(self._reference.parameters()))

    def _require_told(self) -> None:
        if self._comparison is None:
            self._trials.require_told()
        elif self._record.trials:
            self._comparison.require_told()
        else:
            raise ReferenceFailed("the reference gives NaN or infinity for all inputs that were tried")

    def _settle(self, trials: Iterator[Trial]) -> None:
        """Whether anything can be judged does not depend on the candidate: go on without it until that is known."""
        if self._comparison is not None:
            return
        self._settling = True
        while not self._reference.verifiable:
            if self._trials.told.untold() and next(trials, None):
                continue
            self._trials.require_told()

    def _run(self, trial: Trial) -> None:
        if not self._passes_itself(trial):
            return
        case, s = trial.case, trial.number % self._bench.sets
        name = self._contract["cases"][case]["name"]
        self._progress(f"verify {name}: {trial.label}", 0.5 * min(1.0, self._record.trials / 10))
        self._bench.put(case, s, trial.inputs)
        first = self._call(case, s)
        self._judge(trial, s, first)
        self._record.trials += 1
        if trial.number == 0:
            self._repeat(trial, s, first)

    def _judge(self, trial: Trial, s: int, outputs: list[Any]) -> None:
        """Compare all outputs and look for damage; keeps the worst margin."""
        wrong = self._by_rule(trial, s, outputs) if self._comparison is None else self._by_comparison(trial, outputs)
        damage = self._bench.damage(trial.case, s) + self._late_writes(trial.case, s, outputs)
        self._record.findings += damage
        if damage or wrong:
            raise WrongOutput("; ".join(wrong + damage))

    def _by_rule(self, trial: Trial, s: int, outputs: list[Any]) -> list[str]:
        """What is wrong with each output."""
        wrong: list[str] = []
        for i, (e, output) in enumerate(zip(trial.expected, outputs, strict=True)):
            error = WORST if self._never_written(trial, s, i, output) else e.error(output)
            if self._record.worst is None or error > self._record.worst["error"]:
                self._record.worst = self._margin(trial, i, error)
            if error > 1:
                wrong.append(self._describe(trial, s, i, output, error))
        return wrong

    def _never_written(self, trial: Trial, s: int, i: int, output: Any) -> bool:
        """Whether our own poison, a NaN, stands where NaN is right."""
        odd = trial.expected[i].odd
        return odd is not None and bool((self._bench.unwritten(trial.case, s, i, output) & odd).any())

    def _by_comparison(self, trial: Trial, outputs: list[Any]) -> list[str]:
        """What the user's function finds wrong with all outputs together."""
        assert self._comparison is not None
        error = self._comparison.error(outputs, right(trial.expected))
        if self._record.worst is None or error > self._record.worst["error"]:
            self._record.worst = self._margin(trial, 0, error)
        case = self._contract["cases"][trial.case]["name"]
        where = f"case {case}, trial {trial.label}"
        return [f"{self._comparison.name}() refuses the outputs ({where}): {in_words(error)}"] if error > 1 else []

    def _passes_itself(self, trial: Trial) -> bool:
        """Whether the user's function accepts what the reference itself gives; without that the trial says nothing.

        Raises:
            ReferenceFailed: it refuses that on the task's own inputs.
        """
        if self._comparison is None:
            return True
        if self._comparison.fits(trial.expected):
            self._comparison.see(trial.case, trial.expected)
            return True
        what = f"{self._comparison.name}() refuses the reference's own outputs in trial {trial.label}"
        if trial.label.startswith(OWN):
            raise ReferenceFailed(what)
        self._record.note(f"{what}; it was dropped")
        return False

    def _late_writes(self, case: int, s: int, outputs: list[Any]) -> list[str]:
        specs = self._contract["cases"][case]["outputs"]
        rows = zip(specs, outputs, self._bench.outputs(case, s), strict=True)
        return [
            f"output {spec['name']} was still being written after the call had returned"
            for spec, taken, live in rows
            if not same_bits(taken, live)
        ]

    def _margin(self, trial: Trial, i: int, error: float) -> dict[str, Any]:
        self._worst = (trial.case, i)
        return {
            "output": self._trials.name(trial.case, i),
            "trial": trial.label,
            "error": error,
            "reference_error": trial.expected[i].reference_error,
            "trivial": self._trials.told.summary(trial.case, i),
        }

    def _describe(self, trial: Trial, s: int, i: int, output: Any, error: float) -> str:
        c, e = self._contract["cases"][trial.case], trial.expected[i]
        unwritten_at = self._bench.unwritten(trial.case, s, i, output)
        failed = e.failures(output) if e.odd is None else e.failures(output) | (unwritten_at & e.odd)
        place: list[int] = failed.nonzero()[0].tolist() if failed.dim() else []
        right_there = e.oracle if e.odd is None or not bool(e.odd[tuple(place)]) else e.reference
        got, want = output[tuple(place)].item(), right_there[tuple(place)].item()
        unwritten = int((unwritten_at & failed).sum())
        size = "" if e.exact else f", the worst {in_words(error)}"
        never = f"; {unwritten} elements were never written" if unwritten else ""
        return (
            f"output {c['outputs'][i]['name']} (case {c['name']}, trial {trial.label}): {int(failed.sum())} of "
            f"{failed.numel()} elements are wrong{size}; the first at {place}: {got:.7g} instead of {want:.7g}{never}"
        )

    def _call(self, case: int, s: int) -> list[Any]:
        """One call; its outputs as they are the moment the runner answers. Somebody keeps what ModelNew gave."""
        self._bench.run(case, [s], "each", hold=True)
        return [t.clone() for t in self._bench.outputs(case, s)]

    def _repeat(self, trial: Trial, s: int, first: list[Any]) -> None:
        """Call again on the same inputs, with other poison: are the bits the same? If not, are they right?"""
        self._bench.poison(trial.case, s)
        second = self._call(trial.case, s)
        same = all(same_bits(a, b) for a, b in zip(first, second, strict=True))
        self._record.deterministic = same and self._record.deterministic is not False
        if not same:
            self._judge(replace(trial, label=f"{trial.label}, second call"), s, second)
