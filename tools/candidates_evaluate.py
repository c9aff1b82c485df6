"""hiera_candidates_evaluate: one to six candidates → verdicts, times, comparison with their parents."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

import anyio
from pydantic import Field, JsonValue

from hiera_mcp.deps import Deps
from hiera_mcp.errors import HieraError, RequestError, StoreError
from hiera_mcp.jobs import fault_of_ours
from hiera_mcp.model.base import Model, digest
from hiera_mcp.model.evaluation import Evaluation, NotRun
from hiera_mcp.model.run import Candidate, Job, JobState
from hiera_mcp.model.work import EvaluateRequest
from hiera_mcp.planning.next_step import ORDER
from hiera_mcp.planning.parents import rivals
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.store import NewCandidate, Store
from hiera_mcp.tools.base import ADDS, DEFAULT_WAIT_S, Ctx, LongResult, RunId, Tool, WaitS, deps_of, finish, unfinished
from hiera_mcp.tools.pairs import time_together
from hiera_mcp.tools.run_state import NOT_EVALUATED, RunState, load_run
from hiera_mcp.tools.sanitizing import watch_best
from hiera_mcp.tools.sources import Submission, check_files
from hiera_mcp.tools.views import CandidateRow

log = logging.getLogger(__name__)

MAX_CANDIDATES = 6
"""HIERA's own number of candidates per round."""

Batch = Annotated[list[Submission], Field(min_length=1, max_length=MAX_CANDIDATES)]
Key = Annotated[
    str | None,
    Field(max_length=200, description="Your own name for this submission: sent again with it, nothing is done twice."),
]


class Evaluated(Model):
    """Results of one submission."""

    results: tuple[CandidateRow, ...]
    """In the order of submission."""
    best: CandidateRow | None
    """The best candidate of the whole run so far."""


class EvaluateResult(LongResult):
    """Null fields: not done yet."""

    results: tuple[CandidateRow, ...] | None = None
    best: CandidateRow | None = None


async def hiera_candidates_evaluate(
    run_id: RunId, candidates: Batch, ctx: Ctx, wait_s: WaitS = DEFAULT_WAIT_S, idempotency_key: Key = None
) -> EvaluateResult:
    """Compile, space-check, verify and time one to six candidates. The only source of verdicts and times.

    Use it once space, direction and strategy of the round are recorded. Each candidate takes one place in the round.
    Give parent_id when a candidate is derived from another. Returns per candidate a status (passed, wrong_output,
    compile_error, invalid_space, crash, timeout, resource_limit, suspect), the reason, and if passed: time, speed-up
    over eager PyTorch with 95 % interval, error margin, time / floor, comparison with its parent; also the run's best.
    A failed candidate is a result, not an error. Each result is stored as soon as it is known. On a GPU compute-sanitizer
    looks at a new best afterwards; hiera_run_status tells what it found.
    Not done within wait_s: call hiera_job. Next: plan the next round, profile the best, or finish.
    """
    deps = deps_of(ctx)
    _check_names(candidates)
    request: JsonValue = {"candidates": [{"name": c.name, "sha256": digest(c.model_dump(), 64)} for c in candidates]}
    job = await deps.jobs.submit(
        "evaluate",
        partial(_evaluate, deps, run_id),
        run_id=run_id,
        request=request,
        key=idempotency_key,
        admit=partial(_admit, run_id, candidates),
    )
    return await _result(deps, run_id, await finish(ctx, job, wait_s))


async def _result(deps: Deps, run_id: str, job: Job) -> EvaluateResult:
    if job.state is not JobState.DONE:
        step = unfinished(job, "submit the same candidates again; they take no further place in the round")
        return EvaluateResult(state=job.state, job_id=job.id, next_step=step)
    result = Evaluated.model_validate(job.result)
    step = (await deps.database(lambda s: load_run(s, run_id))).next_step
    return EvaluateResult(state=job.state, job_id=job.id, results=result.results, best=result.best, next_step=step)


def _check_names(candidates: Sequence[Submission]) -> None:
    names = [c.name for c in candidates]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise RequestError(f"Two candidates have the same name: {', '.join(twice)}.", todo="Give each its own name.")


def _admit(run_id: str, submissions: Sequence[Submission], store: Store, busy: Mapping[str, str]) -> Sequence[str]:
    """Ids of the submitted candidates; those that never got a result are taken up again.

    Raises:
        RequestError: the run is not planned, the round has too few places, a file is unknown.
    """
    state = load_run(store, run_id)
    check_planned(state)
    for s in submissions:
        _check_submission(state, s)
    known = [_unfinished(state, s, busy) for s in submissions]
    new = [_new(s) for s, earlier in zip(submissions, known, strict=True) if earlier is None]
    added = iter(store.add_candidates(run_id, new) if new else ())
    return [earlier or next(added).id for earlier in known]


def check_planned(state: RunState) -> None:
    """Refuse to evaluate before all that the run decides is recorded."""
    kinds = {d.decision.kind for d in state.decisions}
    for kind in ORDER:
        if kind not in kinds | state.skipped:
            raise RequestError(
                f"The run has no {kind} yet.",
                todo=f"Call hiera_plan_{kind}(run_id='{state.run.id}') and record a choice first.",
            )


def _check_submission(state: RunState, submission: Submission) -> None:
    space = state.run.space or state.contract.spaces[0]
    check_files(submission.name, submission.sources, state.contract.target, space)
    ids = [c.id for c in state.candidates]
    if submission.parent_id is not None and submission.parent_id not in ids:
        raise RequestError(
            f"Candidate `{submission.name}` names the parent {submission.parent_id!r}, which is not of this run.",
            todo="Leave parent_id out when there is no parent."
            if ids
            else "The run has no candidates yet: leave it out.",
            valid=ids,
        )


def _unfinished(state: RunState, submission: Submission, busy: Mapping[str, str]) -> str | None:
    """The candidate of this round with the same name and sources that has no result, if there is one."""
    for c in state.candidates:
        same = c.round == state.run.round and c.name == submission.name and c.sources == submission.sources
        if not same or c.id in state.outcomes:
            continue
        if c.id in busy:
            raise RequestError(
                f"Candidate `{c.name}` ({c.id}) is being evaluated already.",
                todo=f"Call hiera_job(job_id='{busy[c.id]}').",
            )
        return c.id
    return None


def _new(s: Submission) -> NewCandidate:
    return NewCandidate(name=s.name, sources=s.sources, parent_id=s.parent_id, idea=s.idea)


async def _evaluate(deps: Deps, run_id: str, notify: Notify, ids: Sequence[str]) -> JsonValue:
    """Evaluate all; builds overlap, the executor gives each measurement its device alone.

    Raises:
        HieraError: none of them could be evaluated.
    """
    batch = _Batch(deps, notify, len(ids))
    candidates = await deps.database(lambda s: [s.candidate(i) for i in ids])
    async with anyio.create_task_group() as group:
        for candidate in candidates:
            group.start_soon(batch.evaluate, candidate)
    if len(batch.errors) == len(ids):
        raise batch.errors[0]
    for candidate in candidates:
        await _meet_rivals(deps, candidate, notify)
    await watch_best(deps, run_id)
    state = await deps.database(lambda s: load_run(s, run_id))
    found = {row.candidate_id: row for row in state.rows}
    best = found.get(state.best_id or "")
    return Evaluated(results=tuple(found[i] for i in ids), best=best).model_dump(mode="json")


async def _meet_rivals(deps: Deps, candidate: Candidate, notify: Notify) -> None:
    """Have a candidate timed in one session with its parent, and with the best before it, where it is close to them."""
    state = await deps.database(lambda s: load_run(s, candidate.run_id))
    if candidate.id not in {o.candidate_id for o in state.sound}:
        return
    others = {o.candidate_id for o in rivals(state.sound, candidate.id, candidate.parent_id)}
    others -= {b if a == candidate.id else a for a, b in state.pairs if candidate.id in (a, b)}  # tried already
    if not others:
        return
    await time_together(deps, candidate, [c for c in state.candidates if c.id in others], notify)
    await deps.database(lambda s: _set_best(s, candidate.run_id))


class _Batch:
    """The candidates of one job while they are evaluated."""

    def __init__(self, deps: Deps, notify: Notify, total: int) -> None:
        self._deps = deps
        self._notify = notify
        self._total = total
        self._done = 0
        self.errors: list[HieraError] = []

    async def evaluate(self, candidate: Candidate) -> None:
        """Evaluate one candidate and store what became of it; a failure of ours is no verdict and stops no other."""
        try:
            status = await self._outcome(candidate)
        except HieraError as error:
            status = await self._not_evaluated(candidate, error)
        except Exception as error:
            log.exception("evaluating candidate %s ended by a fault of ours", candidate.id)
            status = await self._not_evaluated(candidate, fault_of_ours(error))
        self._done += 1
        await self._notify(f"{candidate.name}: {status} ({self._done} of {self._total})", self._done / self._total)

    async def _outcome(self, candidate: Candidate) -> str:
        request = await self._deps.database(lambda s: _request(s, candidate))
        outcome = await self._deps.executor.evaluate(request, partial(self._tell, candidate))
        await self._deps.database(lambda s: _record(s, candidate, outcome))
        return outcome.status.value if isinstance(outcome, Evaluation) else "not run"

    async def _not_evaluated(self, candidate: Candidate, error: HieraError) -> str:
        self.errors.append(error)
        data: JsonValue = {"candidate_id": candidate.id, "reason": str(error)}
        try:
            await self._deps.database(lambda s: s.add_event(NOT_EVALUATED, data, candidate.run_id))
        except StoreError as problem:  # the candidate then shows as cut off
            log.warning("why candidate %s has no result is not stored: %s", candidate.id, problem)
        return "not evaluated"

    async def _tell(self, candidate: Candidate, message: str, fraction: float | None) -> None:
        await self._notify(f"{candidate.name}: {message}", (self._done + 0.9 * (fraction or 0.0)) / self._total)


def _request(store: Store, candidate: Candidate) -> EvaluateRequest:
    contract_id = store.run(candidate.run_id).contract_id
    return EvaluateRequest(
        contract=store.contract(contract_id),
        files=store.contract_files(contract_id),
        space=candidate.space,
        sources=candidate.sources,
    )


def _record(store: Store, candidate: Candidate, outcome: Evaluation | NotRun) -> None:
    """Store what became of a candidate, and whether it now leads its run."""
    store.put_outcome(candidate.id, outcome)
    _set_best(store, candidate.run_id)


def _set_best(store: Store, run_id: str) -> None:
    state = load_run(store, run_id)
    if state.best_id is not None and state.best_id != state.run.best_candidate_id:
        store.set_best(run_id, state.best_id)


TOOL = Tool(hiera_candidates_evaluate, "Evaluate candidates", ADDS)
