"""How a tool is declared, and what all tools share."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp.types import ToolAnnotations
from pydantic import Field

from hiera_mcp.deps import Deps
from hiera_mcp.errors import HieraError, error_from_dict
from hiera_mcp.model.base import Model
from hiera_mcp.model.run import Job, JobState

Ctx = Context[Deps, Any]


@dataclass(frozen=True)
class Tool:
    """One tool: the function is its name, its docstring the description, its signature both schemas."""

    run: Callable[..., Awaitable[Model]]
    title: str
    annotations: ToolAnnotations

    @property
    def name(self) -> str:
        return self.run.__name__

    @property
    def description(self) -> str:
        return inspect.cleandoc(self.run.__doc__ or "")


def _hints(*, reads_only: bool, destructive: bool, idempotent: bool) -> ToolAnnotations:
    return ToolAnnotations(
        read_only_hint=reads_only, destructive_hint=destructive, idempotent_hint=idempotent, open_world_hint=False
    )


READS = _hints(reads_only=True, destructive=False, idempotent=True)
"""Changes nothing."""
ADDS = _hints(reads_only=False, destructive=False, idempotent=False)
"""Adds something; calling it twice adds it twice."""
ENSURES = _hints(reads_only=False, destructive=False, idempotent=True)
"""Adds or computes something; calling it again with the same arguments changes nothing more."""
STOPS = _hints(reads_only=False, destructive=True, idempotent=True)
"""May end something that cannot be resumed."""

ContractId = Annotated[str, Field(description="From hiera_contract_build.")]
RunId = Annotated[str, Field(description="From hiera_run_start.")]
CandidateId = Annotated[str, Field(description="From hiera_candidates_evaluate.")]
Reason = Annotated[
    str, Field(max_length=4000, description="Why. Needed when you choose something else than the recommendation.")
]
WaitS = Annotated[
    float,
    Field(ge=0, le=300, description="Seconds to wait before a job id is returned instead of the result."),
]
DEFAULT_WAIT_S = 25.0
"""Some clients give up on a call after 30 s."""


def deps_of(ctx: Ctx) -> Deps:
    """The server's parts."""
    return ctx.request_context.lifespan_context


class LongResult(Model):
    """What every long call returns beside its result."""

    state: JobState
    job_id: str
    next_step: str


async def finish(ctx: Ctx, job: Job, wait_s: float) -> Job:
    """The job after at most `wait_s` seconds, with progress to the client on the way.

    Raises:
        HieraError: the job failed; the error that it ended with.
    """
    job = await follow(ctx, job.id, wait_s)
    if job.state is JobState.FAILED:
        raise job_error(job)
    return job


async def follow(ctx: Ctx, job_id: str, wait_s: float) -> Job:
    """Like `finish`, but a failed job is returned, not raised."""
    last = 0.0

    async def tell(job: Job) -> None:
        nonlocal last
        last = max(last + 1e-6, job.progress or 0.0)  # the protocol wants each value above the one before
        await ctx.report_progress(last, None if job.progress is None else 1.0, f"{job.kind}: {job.message}")

    return await deps_of(ctx).jobs.wait(job_id, wait_s, tell)


def job_error(job: Job) -> HieraError:
    """The error that a failed or interrupted job ended with."""
    return error_from_dict(dict(job.error) if isinstance(job.error, dict) else {})


def unfinished(job: Job, again: str) -> str:
    """The next step while there is no result. `again` says how the work is submitted anew."""
    if not job.state.ended:
        return f"Not done yet ({job.message}). Call hiera_job(job_id='{job.id}') to wait for it."
    return f"The job is {job.state.value}: {_why(job)}To do the work again, {again}."


def _why(job: Job) -> str:
    return f"{job_error(job)} " if job.error else ""
