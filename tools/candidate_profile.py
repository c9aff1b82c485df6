"""hiera_candidate_profile: what bounds a candidate."""

from functools import partial
from typing import Annotated, Any

from pydantic import Field, JsonValue

from hiera_mcp.deps import Deps
from hiera_mcp.errors import RequestError
from hiera_mcp.model.evaluation import Evaluation, NotRun, Status
from hiera_mcp.model.profile import ParentDiff, Profile, Profiled
from hiera_mcp.model.run import Job, JobState
from hiera_mcp.model.work import ProfileRequest
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.store import Store
from hiera_mcp.tools.base import (
    DEFAULT_WAIT_S,
    ENSURES,
    CandidateId,
    Ctx,
    LongResult,
    Tool,
    WaitS,
    deps_of,
    finish,
    unfinished,
)
from hiera_mcp.tools.predicted import diff_of, strategy_of
from hiera_mcp.tools.profile_view import ProfileView, profile_view
from hiera_mcp.tools.run_state import load_run
from hiera_mcp.tools.sanitized import SanitizerView
from hiera_mcp.tools.sanitizing import on_request, runnable

TOOL_S = 120.0
"""So long may each tool of compute-sanitizer take."""

Sanitize = Annotated[
    bool,
    Field(
        description="Run compute-sanitizer instead (memcheck, racecheck, initcheck, synccheck) on any candidate that was "
        "built, also one that crashed: bad accesses, races, uninitialised reads, by source line. CUDA only."
    ),
]


class ProfileResult(LongResult):
    """Null fields: not asked for, or not done yet."""

    profile: ProfileView | None = None
    sanitizer: SanitizerView | None = None


async def hiera_candidate_profile(
    candidate_id: CandidateId, ctx: Ctx, wait_s: WaitS = DEFAULT_WAIT_S, sanitize: Sanitize = False
) -> ProfileResult:
    """Find out what bounds a candidate that passed, which source lines cost it, and which direction that speaks for.

    Use it on the best candidate before planning the next round: directions are scored from it. Returns bottleneck, time /
    floor, a score for each direction with the values behind it, counters and stall reasons per kernel, the costly lines,
    what changed against the parent, registers and spills. Hardware counters need Nsight Compute on a GPU host; where they
    are missing it says why, and the rest is static or derived from the time.
    Next: plan the next round; hiera_plan_direction reads the best candidate's profile.
    """
    deps = deps_of(ctx)
    if sanitize:
        candidate = await deps.database(lambda s: runnable(s, candidate_id))
        run_id, work = candidate.run_id, partial(on_request, deps, candidate, TOOL_S)
    else:
        run_id, request = await deps.database(lambda s: _request(s, candidate_id))
        work = partial(_profile, deps, candidate_id, request)
    asked: JsonValue = {"candidate_id": candidate_id, "sanitize": sanitize}
    job = await deps.jobs.submit("profile", work, run_id=run_id, request=asked)
    return await _result(deps, run_id, await finish(ctx, job, wait_s))


async def _result(deps: Deps, run_id: str, job: Job) -> ProfileResult:
    if job.state is not JobState.DONE:
        return ProfileResult(state=job.state, job_id=job.id, next_step=unfinished(job, "call this tool again"))
    result: Any = job.result
    step = (await deps.database(lambda s: load_run(s, run_id))).next_step
    return ProfileResult(state=job.state, job_id=job.id, next_step=step, **result)


def _request(store: Store, candidate_id: str) -> tuple[str, ProfileRequest]:
    candidate = store.candidate(candidate_id)
    run = store.run(candidate.run_id)
    outcome = store.outcome(candidate_id)
    _check_profilable(candidate_id, outcome)
    request = ProfileRequest(
        contract=store.contract(run.contract_id),
        files=store.contract_files(run.contract_id),
        space=candidate.space,
        sources=candidate.sources,
        timing=outcome.timing if isinstance(outcome, Evaluation) else None,
    )
    return run.id, request


def _check_profilable(candidate_id: str, outcome: Evaluation | NotRun | None) -> None:
    if isinstance(outcome, NotRun) or (outcome is not None and outcome.status is Status.PASSED):
        return
    found = "has no result yet" if outcome is None else f"ended as {outcome.status.value}"
    raise RequestError(
        f"Candidate {candidate_id} {found}; only a candidate that passed has something to profile.",
        todo="hiera_run_status shows which ones passed.",
    )


async def _profile(deps: Deps, candidate_id: str, request: ProfileRequest, notify: Notify, _: object) -> JsonValue:
    found = await deps.executor.profile(request, notify)
    stored = await deps.database(lambda s: _keep(s, candidate_id, found))
    return {"profile": profile_view(stored, candidate_id).model_dump(mode="json")}


def _keep(store: Store, candidate_id: str, found: Profiled) -> Profile:
    """Store the profile together with what moved from the candidate's parent."""
    profile = found.profile.model_copy(update={"diff": _diff(store, candidate_id, found.profile)})
    store.put_profile(candidate_id, found.model_copy(update={"profile": profile}))
    return profile


def _diff(store: Store, candidate_id: str, profile: Profile) -> ParentDiff | None:
    candidate = store.candidate(candidate_id)
    state = load_run(store, candidate.run_id)
    judged = {o.candidate_id: o for o in state.judged}
    parent = judged.get(candidate.parent_id or "")
    if parent is None:
        return None
    strategy = strategy_of(state.decisions, candidate.round)
    old = store.profile(parent.candidate_id)
    return diff_of(strategy, state.contract, judged[candidate_id], parent, profile, old)


TOOL = Tool(hiera_candidate_profile, "Profile a candidate", ENSURES)
