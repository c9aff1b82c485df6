"""A run as the store has it, read in one go, and its view."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from hiera_mcp.model.contract import Contract
from hiera_mcp.model.evaluation import Comparison, NotRun
from hiera_mcp.model.plan import DecisionKind
from hiera_mcp.model.profile import Prediction, Profile
from hiera_mcp.model.run import Candidate, Job, Run
from hiera_mcp.model.sanitizer import Sanitized
from hiera_mcp.planning.evidence import Outcome as Judged
from hiera_mcp.planning.evidence import outcome_of
from hiera_mcp.planning.next_step import RunState as Standing
from hiera_mcp.planning.next_step import goal_speedup, next_step
from hiera_mcp.planning.parents import best_of, select_parents, versus
from hiera_mcp.store import RecordedDecision, Store
from hiera_mcp.tools.candidate_rows import Outcome, rows, shortened
from hiera_mcp.tools.pairs import Pairs, comparisons_of, pairs_of, with_refusal
from hiera_mcp.tools.predicted import texts
from hiera_mcp.tools.views import CandidateRow, DecisionRow

NOT_EVALUATED = "not_evaluated"
"""Event: the sandbox failed on a candidate; data: candidate_id, reason."""
CUT_OFF = "Its evaluation was cut off before there was a result."
RESUBMIT = "Submit the same name and sources again; it takes no further place in the round."


@dataclass(frozen=True)
class RunState:
    """All that is known of a run at one moment."""

    run: Run
    contract: Contract
    candidates: tuple[Candidate, ...]
    outcomes: Mapping[str, Outcome]
    """Candidate id → newest outcome."""
    decisions: tuple[RecordedDecision, ...]
    open_jobs: tuple[Job, ...]
    failures: Mapping[str, str]
    """Candidate id → why the sandbox could not evaluate it, the last time it tried."""
    pairs: Pairs
    """Sessions of two candidates."""
    checked: Mapping[str, Sanitized]
    """What compute-sanitizer said of those that it looked at."""
    best_profile: Profile | None = None
    """Profile of the best candidate."""
    predictions: Mapping[str, Prediction] = field(default_factory=dict[str, Prediction])
    """Candidate id → what its profile says of the prediction of its strategy."""

    @cached_property
    def judged(self) -> tuple[Judged, ...]:
        """The candidates as the planner sees them."""
        return tuple(
            outcome_of(c, self.outcomes.get(c.id), self.contract, comparisons_of(self.pairs, c.id))
            for c in self.candidates
        )

    @property
    def rows(self) -> tuple[CandidateRow, ...]:
        return rows(
            self.candidates,
            self.outcomes,
            self.contract,
            best_id=self.best_id,
            versus=self._versus_parents(),
            pending=self._pending(),
            checked=self.checked,
        )

    @cached_property
    def sound(self) -> tuple[Judged, ...]:
        """Those that were not seen to touch memory that is not theirs: only they can be the best, or parents."""
        return tuple(o for o in self.judged if o.candidate_id not in self.checked or not self._breaks_memory(o))

    def _breaks_memory(self, outcome: Judged) -> bool:
        return self.checked[outcome.candidate_id].breaks_memory

    @property
    def best_id(self) -> str | None:
        best = best_of(self.sound)
        return best.candidate_id if best else None

    @property
    def parent_ids(self) -> tuple[str, ...]:
        return tuple(o.candidate_id for o in select_parents(self.sound))

    @property
    def skipped(self) -> frozenset[DecisionKind]:
        """What the run does not decide."""
        space: tuple[DecisionKind, ...] = ("space",) if self.run.switches.fixed_space else ()
        direction: tuple[DecisionKind, ...] = () if self.run.switches.directions else ("direction",)
        return frozenset((*space, *direction))

    @property
    def left_in_round(self) -> int:
        """Candidates that the present round still has places for."""
        used = sum(c.round == self.run.round for c in self.candidates)
        return self.run.budget.candidates_per_round - used

    @property
    def next_step(self) -> str:
        """The next call, as a sentence."""
        return next_step(self._standing())

    def _standing(self) -> Standing:
        here, best = self.run.round, best_of(self.sound)
        pending = self._pending()
        speedup = best.speedup if best else None
        return Standing(
            run_id=self.run.id,
            round=here,
            rounds=self.run.budget.rounds,
            candidates_per_round=self.run.budget.candidates_per_round,
            decided=frozenset(d.decision.kind for d in self.decisions if d.round == here),
            decided_before=frozenset(d.decision.kind for d in self.decisions if d.round < here),
            skipped=self.skipped,
            candidates_left=self.left_in_round,
            pending_jobs=tuple(job.id for job in self.open_jobs if job.kind != "sanitize"),
            sanitizing=tuple(job.id for job in self.open_jobs if job.kind == "sanitize"),
            without_result=tuple(c.name for c in self.candidates if c.round == here and c.id in pending),
            best_candidate_id=self.best_id,
            best_profiled=self.best_profile is not None,
            speedup=speedup.low if speedup else None,
            floor_ratio=best.floor_ratio if best else None,
            target_speedup=goal_speedup(self.run.goal),
            compiled_only=self._compiled_only(),
            finished=self.run.state == "finished",
        )

    def _compiled_only(self) -> bool:
        """Whether this round's candidates could only be built here."""
        found = [self.outcomes.get(c.id) for c in self.candidates if c.round == self.run.round]
        return any(isinstance(o, NotRun) for o in found)

    @property
    def decision_rows(self) -> tuple[DecisionRow, ...]:
        parents = {c.id: c.parent_id for c in self.candidates}
        said = texts(self.decisions, self.judged, parents, self.predictions)
        return tuple(_decision_row(d, said.get(d.id, "")) for d in self.decisions)

    def _versus_parents(self) -> dict[str, Comparison]:
        judged = {o.candidate_id: o for o in self.judged}
        of_two = ((c.id, c.parent_id, judged[c.id], judged.get(c.parent_id or "")) for c in self.candidates)
        found = {i: (p, versus(own, parent)) for i, p, own, parent in of_two if p and parent}
        return {i: with_refusal(c, self.pairs, i, p) for i, (p, c) in found.items() if c}

    def _pending(self) -> dict[str, str]:
        """Candidates without a result that will not get one by waiting: id → why."""
        why = dict(self.failures)
        if not any(job.kind == "evaluate" for job in self.open_jobs):
            why = dict.fromkeys((c.id for c in self.candidates), CUT_OFF) | why
        return {i: f"{reason} {RESUBMIT}" for i, reason in why.items() if i not in self.outcomes}


def load_run(store: Store, run_id: str) -> RunState:
    """The state of a run; NotFoundError when there is none."""
    run = store.run(run_id)
    store.mark_interrupted()
    state = RunState(
        run=run,
        contract=store.contract(run.contract_id),
        candidates=store.candidates(run_id),
        outcomes=store.outcomes(run_id),
        decisions=store.decisions(run_id),
        open_jobs=store.jobs(run_id, open_only=True),
        failures=_failures(store, run_id),
        predictions=store.predictions(run_id),
        checked=store.sanitized(run_id),
        pairs=pairs_of(store, run_id),
    )
    return replace(state, best_profile=store.profile(state.best_id)) if state.best_id else state


def _failures(store: Store, run_id: str) -> dict[str, str]:
    events = store.events(run_id, limit=100_000)
    data = [e.data for e in events if e.kind == NOT_EVALUATED and isinstance(e.data, dict)]
    return {str(d["candidate_id"]): str(d["reason"]) for d in data}


def _decision_row(recorded: RecordedDecision, prediction: str) -> DecisionRow:
    d = recorded.decision
    return DecisionRow(
        decision_id=recorded.id,
        round=recorded.round,
        kind=d.kind,
        choice=d.choice,
        decided_by=d.decided_by,
        reason=shortened(d.reason),
        recommended=d.recommended,
        prediction=prediction,
    )
