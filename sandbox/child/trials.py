"""The trials of one evaluation on the reference's side: which inputs and parameters, what is right, what they tell apart.

After the ordinary trials more follow, under other inputs and parameters, until every trivial answer is told from the right
one (degenerate.py). Where that does not come about, nothing can be judged.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hiera_mcp.sandbox.child.compare import Expected, agree, expect, finite, same_bits, with_sample
from hiera_mcp.sandbox.child.degenerate import ALONG, CONSTANT, ECHO, OTHER_INPUTS, ZEROS, Told
from hiera_mcp.sandbox.child.draws import HUGE, OWN, changed_in_part, perturb, redraw
from hiera_mcp.sandbox.child.record import Record
from hiera_mcp.sandbox.child.reference import Reference, ReferenceFailed, Unverifiable
from hiera_mcp.sandbox.child.sampled_oracle import Rows, SampledOracle

DRAWN = "drawn"
PARTLY = "partly changed"
"""The inputs of the trial before it, on the same buffers, but for a stretch of each (draws.changed_in_part)."""
PARAMETERS: dict[str, Callable[[str, Any, bool], Any]] = {
    "moved": perturb,
    "redrawn": partial(redraw, gain=2.0, offset=0.5),
    "redrawn with tiny biases": partial(redraw, gain=1.0, offset=0.005),
}
"""How parameters are made from the drawn ones: (path, tensor, is it a buffer) → tensor."""


@dataclass(frozen=True)
class Phase:
    """Trials with the same parameters."""

    parameters: str
    distributions: tuple[str, ...]

    def label(self, n: int, distribution: str) -> str:
        return f"{distribution} #{n + 1}" + ("" if self.parameters == DRAWN else f", parameters {self.parameters}")


ORDINARY = (
    Phase(DRAWN, (OWN, OWN, PARTLY, "signed", "large", "small", HUGE, "outliers")),
    Phase("moved", (OWN, "signed")),
)
FURTHER = (
    Phase("redrawn", (OWN, OWN, "signed", "signed")),
    Phase(DRAWN, ("graded", "graded", "shifted", "shifted")),
    Phase("redrawn", ("graded", "graded", "shifted", "shifted")),
    Phase("redrawn with tiny biases", ("signed", "signed", "graded", "graded")),
)
"""Run only while a trivial answer is not told. In pairs: two draws of one kind show whether the output follows the inputs."""
SURVEY = (Phase(DRAWN, (OWN, OWN, "signed", "signed")), *FURTHER)
"""Without a candidate: only what tells something."""
PATIENCE_S = 20.0
"""After so many seconds only trials that nothing else replaces are run: own, signed, and what is needed to tell."""
GIVE_UP_S = 180.0
"""After so many seconds nothing more is tried to tell a trivial answer: an evaluation has to end."""


@dataclass(frozen=True)
class Trial:
    """One draw and what is right for it."""

    case: int
    number: int
    """Among those with the same parameters; that of the trial before it where only a part of its inputs is new."""
    label: str
    inputs: list[Any]
    expected: list[Expected]


class Trials:
    """Draws the trials of one evaluation, one when the one before it is done with.

    Args:
        on_parameters: called whenever the reference's parameters are others than before, and at the start.
        with_oracle: false where running it in float64 would take too long.
    """

    def __init__(
        self, reference: Reference, record: Record, on_parameters: Callable[[], None], with_oracle: bool = True
    ) -> None:
        self._reference = reference
        self._record = record
        self._on_parameters = on_parameters
        self._contract = reference.contract
        self._cases = range(len(self._contract["cases"]))
        self._spent = 0.0
        """Seconds on the reference's side: how slow a candidate is must not leave out what it has to pass."""
        self._before: list[Any] = []
        self._earlier: tuple[tuple[int, str, str], list[Any]] | None = None
        self._oracle_works = with_oracle
        self._sampling: SampledOracle | None = None
        self.count = 0
        """Trials so far."""
        self._has_floats = any(t["dtype"].startswith(("float", "bfloat")) for t in self._contract["cases"][0]["inputs"])
        self._parameters = ""
        self._drawn: list[Any] = []
        self.reference_mutates = False
        self._told_by_own: dict[str, Told] = {}
        """Parameters → what the task's own inputs tell with them."""
        self.told = Told(self._contract["cases"], lambda: self._oracle_works)

    def __iter__(self) -> Iterator[Trial]:
        """The ordinary trials, then further ones as long as they are needed. At the end the parameters are those to time under."""
        self._drawn = [p.clone() for p in self._reference.parameters()]
        for phase in ORDINARY:
            if self._prepare(phase.parameters):
                yield from self._phase(phase, self._wanted)
        for phase in FURTHER:
            if any(self._needed(c, phase, 0, OWN) for c in self._cases) and self._prepare(phase.parameters):
                yield from self._phase(phase, self._needed)
        self._prepare(self._to_time_under())

    def _to_time_under(self) -> str:
        """Not under the drawn parameters, so that nothing is won by knowing them: a weight of 0 or 1 that leaves a part of
        the work without effect, layers through which nothing comes. Moved ones, or the first others under which the task's
        own inputs tell the trivial answers."""
        for parameters in (*PARAMETERS, DRAWN):
            told = self._told_by_own.get(parameters)
            if told is not None and all(kind == OTHER_INPUTS for _, _, kind in told.untold()):
                return parameters
        return next((p for p in PARAMETERS if p in self._told_by_own), DRAWN)

    def survey(self) -> Iterator[Trial]:
        """Only trials that tell something, until everything is told. The parameters are left as they come."""
        self._drawn = [p.clone() for p in self._reference.parameters()]
        for phase in SURVEY:
            if any(self._needed(c, phase, 0, OWN) for c in self._cases) and self._prepare(phase.parameters):
                yield from self._phase(phase, self._needed)

    def one(self, case: int, number: int, label: str, distribution: str) -> Trial | None:
        """A trial; None when the reference or its oracle is not finite."""
        start = time.perf_counter()
        inputs = self._inputs(case, distribution)
        expected = self._expected(case, inputs, distribution)
        self._spent += time.perf_counter() - start
        if expected is None:
            self._record.note(f"trial {label} was dropped: the reference gives NaN or infinity")
            return None
        if distribution == HUGE and any(e.slack > 1 for e in expected):
            self._record.note(f"trial {label} was dropped: the reference itself is inexact there")
            return None
        self._before = inputs
        return Trial(case, number - (distribution == PARTLY), label, inputs, expected)

    def _inputs(self, case: int, distribution: str) -> list[Any]:
        if distribution != PARTLY:
            return self._reference.draw_inputs(case, distribution)
        return changed_in_part(self._before, self._reference.draw_inputs(case))

    def require_told(self) -> None:
        """Whether the trials could be passed without work; called when all are done, or as many as were needed.

        Raises:
            ReferenceFailed: no trial was finite.
            Unverifiable: a trivial answer fits in every trial.
        """
        if not self.count:
            raise ReferenceFailed("the reference gives NaN or infinity for all inputs that were tried")
        untold = self.told.untold()
        if untold:
            self._reference.unverifiable = unverifiable(self.name(*untold[0][:2]), untold[0][2], self.count)
            raise self._reference.unverifiable
        self._reference.verifiable = True
        for case, output, kind in self.told.open():
            self._record.note(
                f"output {self.name(case, output)} hardly varies along dimension {kind.removeprefix(ALONG)}"
            )

    def _prepare(self, parameters: str) -> bool:
        """Set the reference's parameters; false where there are none to change."""
        if parameters == self._parameters:
            return True
        changed = parameters != DRAWN
        if self._parameters:
            self._reference.restore_parameters(self._drawn)
        if changed and not self._reference.change_parameters(PARAMETERS[parameters]):
            return False
        self._parameters = parameters
        self._on_parameters()
        return True

    def _phase(self, phase: Phase, wanted: Callable[..., bool]) -> Iterator[Trial]:
        for case in self._cases:
            self._before = []
            for n, distribution in enumerate(phase.distributions):
                label = phase.label(n, distribution)
                trial = self.one(case, n, label, distribution) if wanted(case, phase, n, distribution) else None
                if trial is not None:
                    self.count += 1
                    self._look(trial, (case, phase.parameters, distribution))
                    yield trial
        self._earlier = None

    def _look(self, trial: Trial, key: tuple[int, str, str]) -> None:
        earlier = self._earlier[1] if self._earlier and self._earlier[0] == key else None
        self.told.see(trial.case, trial.expected, trial.inputs, earlier)
        if key[2] == OWN:
            told = self._told_by_own.setdefault(key[1], Told(self._contract["cases"], lambda: self._oracle_works))
            told.see(trial.case, trial.expected, trial.inputs, None)
        follows = any(k == OTHER_INPUTS for _, _, k in self.told.untold(trial.case))
        self._earlier = (key, [e.oracle for e in trial.expected]) if follows else None

    def _wanted(self, case: int, phase: Phase, n: int, distribution: str) -> bool:
        """Whether an ordinary trial is to be run."""
        if distribution != OWN and not self._has_floats:
            return False
        if distribution == PARTLY and not self._before:
            return False
        essential = distribution == OWN or (phase.parameters == DRAWN and distribution == "signed")
        if not essential and not self._soon():
            self._record.note(f"trial {phase.label(n, distribution)} was left out: the reference is slow")
            return False
        return True

    def _needed(self, case: int, phase: Phase, n: int, distribution: str) -> bool:
        """Whether something is still to be told. What may stay untold is worth the first phase only."""
        untold = [kind for _, _, kind in self.told.untold(case)]
        if self._spent > GIVE_UP_S:
            return False
        if n % 2:
            return OTHER_INPUTS in untold
        if phase is SURVEY[0]:
            return bool(self.told.passing(case))
        return bool(untold) or (phase is FURTHER[0] and self._soon() and bool(self.told.open(case)))

    def _soon(self) -> bool:
        return self._spent < PATIENCE_S

    def name(self, case: int, output: int) -> str:
        c = self._contract["cases"][case]
        return f"{c['outputs'][output]['name']} of case {c['name']}"

    def _expected(self, case: int, inputs: list[Any], distribution: str) -> list[Expected] | None:
        """What each output should be; None when the reference overflows, or is not finite and nothing confirms it."""
        own = [x.clone() for x in inputs]
        reference = self._reference.outputs(case, own)
        self._fits(case, reference)
        if not all(same_bits(a, b) for a, b in zip(own, inputs, strict=True)):
            self.reference_mutates = True
            self._record.note("the reference changes its inputs; it is given copies")
        oracle = self._oracle(case, inputs) or [None] * len(reference)
        if not all(self._usable(r, o, distribution) for r, o in zip(reference, oracle, strict=True)):
            return None
        tolerance = self._contract["tolerance"]
        expected = [expect(r.contiguous(), o, tolerance) for r, o in zip(reference, oracle, strict=True)]
        rows = self._sampled(case, inputs, reference)
        if rows is not None:
            pairs = zip(expected, rows.oracle, strict=True)
            expected = [with_sample(e, rows.start, rows.stop, o, tolerance) for e, o in pairs]
        for i, e in enumerate(expected if distribution == OWN else ()):  # as those of timed calls are
            self._record.slack[case, i] = max(e.slack, self._record.slack.get((case, i), 1.0))
            if e.slices is not None:
                self._record.sliced.add((case, i))
        return expected

    def _usable(self, reference: Any, oracle: Any | None, distribution: str) -> bool:
        """Whether an output can be judged by: finite, or with infinities and NaN that the oracle has as well, between finite
        values. NaN counts on the task's own draw alone: where inputs of ours lead out of a function's domain (the logarithm
        of what is negative), an honest candidate may answer anything. A comparison of the user's own knows no such places."""
        if not reference.is_floating_point():
            return True
        if oracle is None or self._contract["tolerance"].get("comparison"):
            return finite(reference) and (oracle is None or finite(oracle))
        if finite(reference) and finite(oracle):
            return True
        judged = agree(reference, oracle) and bool(oracle.isfinite().any())
        return judged and (distribution == OWN or not bool(oracle.isnan().any()))

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
            share = oracle_share(self._contract, self._reference.device)
            if share < 1:
                self._sampling = SampledOracle(self._reference, share) if share > 0 else None
                raise MemoryError("too large for the free memory")
            return self._reference.oracle_outputs(case, [x.clone() for x in inputs])
        except (RuntimeError, TypeError, NotImplementedError, MemoryError) as e:
            self._without_oracle(str(e))
            return None

    def _sampled(self, case: int, inputs: list[Any], reference: Sequence[Any]) -> Rows | None:
        """An oracle on part of the batch, where one on all of it does not fit."""
        if self._sampling is None:
            return None
        try:
            rows = self._sampling.rows(case, inputs, [r.contiguous() for r in reference])
        except (RuntimeError, TypeError, NotImplementedError, MemoryError) as e:
            self._sampling = None
            self._without_oracle(str(e))
            return None
        if rows is None:
            self._sampling = None
            self._without_oracle("too large for the free memory, and samples of a batch do not stand for themselves")
            return None
        if not all(finite(o) for o in rows.oracle if o.is_floating_point()):
            return None
        batch = reference[0].shape[0]
        self._record.oracle, self._record.oracle_share = "sampled", (rows.stop - rows.start) / batch
        self._record.note(
            f"the float64 oracle does not fit into memory: it was run on {rows.stop - rows.start} random samples of {batch} in a "
            "row in each trial, the others are compared with the reference itself"
        )
        return rows

    def _without_oracle(self, why: str) -> None:
        self._oracle_works = False
        self._record.oracle, self._record.oracle_share = "reference", 0.0
        if self._sampling is None:
            self._record.note(f"no float64 oracle, outputs are compared with the reference itself: {why[:200]}")


def oracle_share(contract: dict[str, Any], device: str) -> float:
    """How much of a batch can be held in float64: inputs, parameters and outputs, four times over, in half of the free
    memory. 1 and more: all of it; 0 and less: not even the parameters."""
    from hiera_mcp.sandbox.child.buffers import spec_bytes
    from hiera_mcp.sandbox.child.machine import free_memory

    def nbytes(tensors: Iterable[dict[str, Any]]) -> int:
        return sum(spec_bytes({**t, "dtype": "float64"}) for t in tensors)

    batches = nbytes(t for c in contract["cases"] for k in ("inputs", "outputs") for t in c[k])
    room = free_memory(device) / 8 - nbytes(contract["parameters"])
    return room / max(1, batches)


_REMEDY = {
    ZEROS: "Remove what makes the output zero for all inputs: operators that cancel each other (x minus its own mean over a "
    "dimension of size 1), a clamp or an activation that no value passes, a constant that is out of scale.",
    CONSTANT: "Remove what makes the output the same everywhere: operators that cancel each other (the mean of a softmax), a "
    "saturated activation or a clamp that every value runs into, a constant that is out of scale.",
    OTHER_INPUTS: "Make the output depend on the values that get_inputs() draws: draw integers at random too, remove what "
    "cancels or saturates, and what drowns the signal (constants that are out of scale, very many layers).",
    ECHO: "Remove the term beside which the rest is too small to be seen, or scale it.",
}
_WHAT = {ZEROS: "zeros", CONSTANT: "one constant for all elements", OTHER_INPUTS: "an output kept from other inputs"}


def unverifiable(output: str, kind: str, trials: int) -> Unverifiable:
    """The refusal to judge candidates for a task on which a trivial answer of this kind is never told from the right one."""
    answer = _WHAT.get(kind) or f"a copy of input {kind.removeprefix(ECHO)}"
    return Unverifiable(
        f"The task is degenerate, so no candidate can be judged: for output {output}, {answer} would have passed under each of the "
        f"{trials} combinations of inputs and parameters that were tried. This says nothing about the candidate.",
        _REMEDY[ECHO if kind.startswith(ECHO) else kind],
    )
