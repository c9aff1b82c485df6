"""Verification: run the candidate on many draws and compare every element with the oracle."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hiera_mcp.sandbox.child.compare import Expected, expect, finite, in_words, same_bits, trivial_errors
from hiera_mcp.sandbox.child.draws import OWN
from hiera_mcp.sandbox.child.reference import Reference, ReferenceFailed
from hiera_mcp.sandbox.child.workbench import Workbench

AS_DRAWN = (OWN, OWN, "signed", "large", "small", "outliers")
"""Distributions of the trials with the parameters as drawn."""
MOVED = (OWN, "signed")
"""Distributions of the trials with every parameter moved away from its default."""
PATIENCE_S = 20.0
"""After so many seconds only the trials that nothing else replaces are run: own, signed, and own with moved parameters."""

Progress = Callable[[str, float], None]
"""Receives a message and a fraction of the whole evaluation."""


class WrongOutput(Exception):
    """The candidate's output, or something around it, is not right; `str()` says what was seen."""


@dataclass
class Record:
    """What verification has seen so far; becomes a Verification of the model."""

    trials: int = 0
    sampled_calls: int = 0
    worst: dict[str, Any] | None = None
    oracle: str = "float64"
    deterministic: bool | None = None
    findings: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    slack: dict[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])
    """(case, output) → greatest slack met, for the check of timed calls."""

    def as_dict(self) -> dict[str, Any]:
        keys = ("trials", "sampled_calls", "worst", "oracle", "deterministic", "findings", "notes")
        return {k: getattr(self, k) for k in keys}

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


class Verifier:
    """Runs the trials of one evaluation.

    Raises (from `verify`):
        WrongOutput: the verdict.
        ReferenceFailed: the reference raises, or is finite in no trial.
        CandidateFailure, RunnerLost, RunnerTimeout: see Peer.ask.
    """

    def __init__(self, reference: Reference, bench: Workbench, record: Record, progress: Progress) -> None:
        self._reference = reference
        self._bench = bench
        self._record = record
        self._progress = progress
        self._contract = reference.contract
        self._cases = range(len(self._contract["cases"]))
        self._others: dict[int, list[Any]] = {}
        self._start = time.perf_counter()
        self._oracle_works = True
        self.reference_mutates = False

    def verify(self) -> float | None:
        """All trials; returns the seconds that hiera_prepare claims. The parameters are as drawn again afterwards."""
        if self._reference.draws_constants:
            self._record.note("get_inputs() always draws the same values; they are varied by up to 10 %")
        drawn = [p.clone() for p in self._reference.parameters()]
        seconds = self._bench.set_parameters(drawn)
        self._phase(AS_DRAWN, "")
        if self._reference.perturb_parameters():
            self._bench.set_parameters(self._reference.parameters())
            self._others.clear()
            self._phase(MOVED, ", parameters moved")
            self._reference.restore_parameters(drawn)
            self._bench.set_parameters(drawn)
        self._others.clear()
        if not self._record.trials:
            raise ReferenceFailed("the reference gives NaN or infinity for all inputs that were tried")
        return seconds

    def verify_once(self) -> None:
        """One trial of the first case, for a run that is neither timed nor judged: the call is as right as it was."""
        self._bench.set_parameters(self._reference.parameters())
        self._trial(0, OWN, f"{OWN} #1", 0)

    def _phase(self, distributions: Sequence[str], suffix: str) -> None:
        for case in self._cases:
            for n, distribution in enumerate(distributions):
                label = f"{distribution} #{n + 1}{suffix}"
                if self._skipped(distribution, n, suffix):
                    self._record.note(f"trial {label} was left out: the reference is slow")
                    continue
                self._trial(case, distribution, label, n)

    def _skipped(self, distribution: str, n: int, suffix: str) -> bool:
        has_floats = any(t["dtype"].startswith(("float", "bfloat")) for t in self._contract["cases"][0]["inputs"])
        if distribution != OWN and not has_floats:
            return True
        essential = (distribution == OWN and n == 0) or (distribution == "signed" and not suffix)
        return not essential and time.perf_counter() - self._start > PATIENCE_S

    def _trial(self, case: int, distribution: str, label: str, n: int) -> None:
        self._progress(f"verify {self._contract['cases'][case]['name']}: {label}", 0.5 * self._record.trials / 10)
        inputs = self._reference.draw_inputs(case, distribution)
        expected = self._expected(case, inputs)
        if expected is None:
            self._record.note(f"trial {label} was dropped: the reference gives NaN or infinity")
            return
        s = n % self._bench.sets
        self._bench.put(case, s, inputs)
        first = self._call(case, s)
        self._judge(case, s, label, expected, inputs, first)
        self._record.trials += 1
        if n == 0:
            self._repeat(case, s, label, expected, inputs, first)

    def _expected(self, case: int, inputs: list[Any]) -> list[Expected] | None:
        """What each output should be; None when the reference or its oracle is not finite."""
        own = [x.clone() for x in inputs]
        reference = self._reference.outputs(case, own)
        self._fits(case, reference)
        if not all(same_bits(a, b) for a, b in zip(own, inputs, strict=True)):
            self.reference_mutates = True
            self._record.note("the reference changes its inputs; it is given copies")
        oracle = self._oracle(case, inputs) or [None] * len(reference)
        if not all(finite(t) for t in (*reference, *oracle) if t is not None and t.is_floating_point()):
            return None
        tolerance = self._contract["tolerance"]
        expected = [expect(r.contiguous(), o, tolerance) for r, o in zip(reference, oracle, strict=True)]
        for i, e in enumerate(expected):
            self._record.slack[case, i] = max(e.slack, self._record.slack.get((case, i), 1.0))
        return expected

    def _fits(self, case: int, outputs: Sequence[Any]) -> None:
        specs = self._contract["cases"][case]["outputs"]
        seen = [(list(t.shape), str(t.dtype).removeprefix("torch.")) for t in outputs]
        wanted = [(list(t["shape"]), t["dtype"]) for t in specs]
        if seen != wanted:
            raise ReferenceFailed(f"the reference gives outputs {seen}, the contract says {wanted}")

    def _oracle(self, case: int, inputs: list[Any]) -> list[Any] | None:
        if not self._oracle_works:
            return None
        try:
            if not oracle_fits(self._contract, self._reference.device):
                raise MemoryError("too large for the free memory")
            return self._reference.oracle_outputs(case, [x.clone() for x in inputs])
        except (RuntimeError, TypeError, NotImplementedError, MemoryError) as e:
            self._oracle_works = False
            self._record.oracle = "reference"
            self._record.note(f"no float64 oracle, outputs are compared with the reference itself: {str(e)[:200]}")
            return None

    def _judge(
        self, case: int, s: int, label: str, expected: list[Expected], inputs: list[Any], outputs: list[Any]
    ) -> None:
        """Compare all outputs and look for damage; keeps the worst margin."""
        wrong: list[str] = []
        for i, (spec, e) in enumerate(zip(self._contract["cases"][case]["outputs"], expected, strict=True)):
            error = e.error(outputs[i])
            if self._record.worst is None or error > self._record.worst["error"]:
                self._record.worst = self._margin(case, spec["name"], label, i, e, error, inputs)
            if error > 1:
                wrong.append(self._describe(case, s, i, label, e, outputs[i], error))
        damage = self._bench.damage(case, s) + self._late_writes(case, s, outputs)
        self._record.findings += damage
        if damage or wrong:
            raise WrongOutput("; ".join(wrong + damage))

    def _late_writes(self, case: int, s: int, outputs: list[Any]) -> list[str]:
        specs = self._contract["cases"][case]["outputs"]
        rows = zip(specs, outputs, self._bench.outputs(case, s), strict=True)
        return [
            f"output {spec['name']} was still being written after the call had returned"
            for spec, taken, live in rows
            if not same_bits(taken, live)
        ]

    def _margin(
        self, case: int, name: str, label: str, i: int, e: Expected, error: float, inputs: list[Any]
    ) -> dict[str, Any]:
        if case not in self._others:
            other = self._reference.draw_inputs(case)
            self._others[case] = self._oracle(case, other) or self._reference.outputs(case, other)
        trivial = trivial_errors(e, inputs, self._others[case][i])
        return {
            "output": f"{name} of case {self._contract['cases'][case]['name']}",
            "trial": label,
            "error": error,
            "reference_error": e.reference_error,
            "trivial": trivial,
        }

    def _describe(self, case: int, s: int, i: int, label: str, e: Expected, output: Any, error: float) -> str:
        c = self._contract["cases"][case]
        failed = e.failures(output)
        place: list[int] = failed.nonzero()[0].tolist() if failed.dim() else []
        got, want = output[tuple(place)].item(), e.oracle[tuple(place)].item()
        unwritten = int((self._bench.unwritten(case, s, i, output) & failed).sum())
        size = "" if e.exact else f", the worst {in_words(error)}"
        never = f"; {unwritten} elements were never written" if unwritten else ""
        return (
            f"output {c['outputs'][i]['name']} (case {c['name']}, trial {label}): {int(failed.sum())} of {failed.numel()} "
            f"elements are wrong{size}; the first at {place}: {got:.7g} instead of {want:.7g}{never}"
        )

    def _call(self, case: int, s: int) -> list[Any]:
        """One call; its outputs as they are the moment the runner answers."""
        self._bench.run(case, [s], "each")
        return [t.clone() for t in self._bench.outputs(case, s)]

    def _repeat(
        self, case: int, s: int, label: str, expected: list[Expected], inputs: list[Any], first: list[Any]
    ) -> None:
        """Call again on the same inputs, with other poison: are the bits the same? If not, are they right?"""
        self._bench.poison(case, s)
        second = self._call(case, s)
        same = all(same_bits(a, b) for a, b in zip(first, second, strict=True))
        self._record.deterministic = same and self._record.deterministic is not False
        if not same:
            self._judge(case, s, f"{label}, second call", expected, inputs, second)


def oracle_fits(contract: dict[str, Any], device: str) -> bool:
    """Whether inputs, parameters and outputs in float64, four times over, stay below half of the free memory."""
    from hiera_mcp.sandbox.child.buffers import spec_bytes
    from hiera_mcp.sandbox.child.machine import free_memory

    tensors = [*contract["parameters"], *(t for c in contract["cases"] for k in ("inputs", "outputs") for t in c[k])]
    return 4 * sum(spec_bytes({**t, "dtype": "float64"}) for t in tensors) < free_memory(device) / 2
