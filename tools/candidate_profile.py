"""hiera_candidate_profile: what bounds a candidate."""

from functools import partial
from typing import Any

from pydantic import JsonValue

from hiera_mcp.deps import Deps
from hiera_mcp.errors import RequestError
from hiera_mcp.model.evaluation import Evaluation, NotRun, Status
from hiera_mcp.model.profile import Profile
from hiera_mcp.model.run import JobState
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
from hiera_mcp.tools.run_state import load_run


class ProfileResult(LongResult):
    """Null profile: not done yet."""

    profile: Profile | None = None


async def hiera_candidate_profile(candidate_id: CandidateId, ctx: Ctx, wait_s: WaitS = DEFAULT_WAIT_S) -> ProfileResult:
    """Find out what bounds a candidate that passed: memory, compute, latency or launches.

    Use it on the best candidate before planning the next round: directions are scored from it. Returns the bottleneck
    in words, metrics with their origin (static, derived from the measured time, or hardware counter), registers and
    spills, occupancy, instruction mix, time / floor. A metric that could not be read is null with the reason.
    Next: plan the next round; hiera_plan_direction reads the best candidate's profile.
    """
    deps = deps_of(ctx)
    run_id, request = await deps.database(lambda s: _request(s, candidate_id))
    work = partial(_profile, deps, candidate_id, request)
    job = await deps.jobs.submit("profile", work, run_id=run_id, request={"candidate_id": candidate_id})
    job = await finish(ctx, job, wait_s)
    if job.state is not JobState.DONE:
        return ProfileResult(state=job.state, job_id=job.id, next_step=unfinished(job, "call this tool again"))
    result: Any = job.result
    step = (await deps.database(lambda s: load_run(s, run_id))).next_step
    return ProfileResult(
        state=job.state, job_id=job.id, profile=Profile.model_validate(result["profile"]), next_step=step
    )


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
    profile = await deps.executor.profile(request, notify)
    await deps.database(lambda s: s.put_profile(candidate_id, profile))
    return {"profile": profile.model_dump(mode="json")}


TOOL = Tool(hiera_candidate_profile, "Profile a candidate", ENSURES)
