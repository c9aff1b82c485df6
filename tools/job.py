"""hiera_job: wait for, look at or stop long work."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from hiera_mcp.deps import Deps
from hiera_mcp.model.base import Model
from hiera_mcp.model.run import Job, JobState
from hiera_mcp.planning.next_step import after_contract
from hiera_mcp.tools.base import DEFAULT_WAIT_S, STOPS, Ctx, Tool, WaitS, deps_of, follow, job_error
from hiera_mcp.tools.run_state import load_run


class JobView(Model):
    """A job as it stands."""

    job_id: str
    kind: str
    state: JobState
    message: str
    progress: float | None
    """0 to 1, when it can be told."""
    result: JsonValue
    """What the call that started it would have returned; null until done."""
    error: str | None
    next_step: str


async def hiera_job(
    job_id: str,
    ctx: Ctx,
    action: Annotated[
        Literal["wait", "status", "cancel"], Field(description="cancel stops the work and discards it.")
    ] = "wait",
    wait_s: WaitS = DEFAULT_WAIT_S,
) -> JobView:
    """Wait for, look at, or cancel long work that returned a job_id.

    Use it when a call came back with state `queued` or `running`. Jobs outlive calls and clients; results are kept.
    Returns the state, progress, and once done the same result that the starting call would have returned. A failed
    job is shown with its error and does not fail this call. Next: follow next_step.
    """
    jobs = deps_of(ctx).jobs
    if action == "cancel":
        job = await jobs.cancel(job_id)
    else:
        job = await follow(ctx, job_id, wait_s if action == "wait" else 0)
    return view(job, await _next_step(deps_of(ctx), job))


def view(job: Job, next_step: str) -> JobView:
    return JobView(
        job_id=job.id,
        kind=job.kind,
        state=job.state,
        message=job.message,
        progress=job.progress,
        result=job.result,
        error=str(job_error(job)) if job.error else None,
        next_step=next_step,
    )


async def _next_step(deps: Deps, job: Job) -> str:
    if not job.state.ended:
        return f"Call hiera_job(job_id='{job.id}') again to wait."
    if job.run_id is None:
        return _without_run(job)
    run_id = job.run_id
    step = (await deps.database(lambda s: load_run(s, run_id))).next_step
    return step if job.state is JobState.DONE else f"Submit the work again if it is still wanted. Else: {step}"


def _without_run(job: Job) -> str:
    contract = job.result.get("contract") if isinstance(job.result, dict) else None
    if isinstance(contract, dict):
        return after_contract(str(contract.get("contract_id")))
    return "Correct what the error names, and submit the work again."


TOOL = Tool(hiera_job, "Wait for a job", STOPS)
