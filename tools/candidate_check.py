"""hiera_candidate_check: compile and space check only."""

from pydantic import JsonValue

from hiera_mcp.errors import RequestError
from hiera_mcp.model.base import Model
from hiera_mcp.model.evaluation import Device, Diagnostic, KernelResources, SpaceFinding
from hiera_mcp.model.run import JobState
from hiera_mcp.model.work import CheckReport, CheckRequest
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.store import Store
from hiera_mcp.tools.base import (
    DEFAULT_WAIT_S,
    ENSURES,
    Ctx,
    LongResult,
    RunId,
    Tool,
    WaitS,
    deps_of,
    finish,
    unfinished,
)
from hiera_mcp.tools.candidate_rows import MAX_DIAGNOSTICS, first_errors
from hiera_mcp.tools.sources import CandidateName, Sources, check_files

MOST_NOTES = 8


class BuildView(Model):
    """The compile step."""

    ok: bool
    diagnostics: tuple[Diagnostic, ...]
    kernels: tuple[KernelResources, ...]
    seconds: float


class Checked(Model):
    """What compiling and looking showed."""

    ok: bool
    """It compiles and lies inside the space."""
    build: BuildView
    space_findings: tuple[SpaceFinding, ...]
    instruction_mix: dict[str, int]
    """Instruction class → count in the binary."""
    notes: tuple[str, ...]
    """What the binary says about speed."""
    device: Device


class CheckResult(LongResult):
    """Null fields: not done yet."""

    ok: bool | None = None
    build: BuildView | None = None
    space_findings: tuple[SpaceFinding, ...] | None = None
    instruction_mix: dict[str, int] | None = None
    notes: tuple[str, ...] | None = None
    device: Device | None = None


async def hiera_candidate_check(
    run_id: RunId, name: CandidateName, sources: Sources, ctx: Ctx, wait_s: WaitS = DEFAULT_WAIT_S
) -> CheckResult:
    """Compile a candidate and check that it lies inside the run's space, without running it.

    Use it before evaluating, as often as you like: it takes seconds and no place in the round. Needs a recorded space.
    Returns compiler errors with file and line, registers and spills per kernel, what lies outside the space, the
    instruction mix of the binary, and what it says about speed (occupancy, spills, narrow loads, idle Tensor Cores). Says
    nothing about correctness.
    Next: fix what it found, then hiera_candidates_evaluate.
    """
    deps = deps_of(ctx)
    request = await deps.database(lambda s: _request(s, run_id, name, sources))

    async def work(notify: Notify, _: object) -> JsonValue:
        return checked(await deps.executor.check(request, notify)).model_dump(mode="json")

    job = await deps.jobs.submit("check", work, run_id=run_id, request={"name": name})
    job = await finish(ctx, job, wait_s)
    if job.state is not JobState.DONE:
        return CheckResult(
            state=job.state, job_id=job.id, next_step=unfinished(job, "call hiera_candidate_check again")
        )
    result = Checked.model_validate(job.result)
    return CheckResult(state=job.state, job_id=job.id, next_step=_next_step(run_id, result), **dict(result))


def _request(store: Store, run_id: str, name: str, sources: dict[str, str]) -> CheckRequest:
    run = store.run(run_id)
    if run.space is None:
        raise RequestError("The run has no space yet.", todo=f"Call hiera_plan_space(run_id='{run_id}') first.")
    contract = store.contract(run.contract_id)
    check_files(name, sources, contract.target, run.space)
    files = store.contract_files(run.contract_id)
    return CheckRequest(contract=contract, files=files, space=run.space, sources=sources)


def checked(report: CheckReport) -> Checked:
    """The executor's report as the agent sees it."""
    build = report.build
    shown = first_errors(build.diagnostics) or build.diagnostics[:MAX_DIAGNOSTICS]
    return Checked(
        ok=build.ok and not report.space_findings,
        build=BuildView(ok=build.ok, diagnostics=shown, kernels=build.kernels, seconds=build.seconds),
        space_findings=report.space_findings,
        instruction_mix=report.instruction_mix,
        notes=report.notes[:MOST_NOTES],
        device=report.device,
    )


def _next_step(run_id: str, result: Checked) -> str:
    if not result.build.ok:
        return "Fix the first error and call hiera_candidate_check again."
    if result.space_findings:
        return "Remove what lies outside the space, or choose a larger space with hiera_plan_space in the next round."
    return f"Submit it with hiera_candidates_evaluate(run_id='{run_id}', candidates=[...])."


TOOL = Tool(hiera_candidate_check, "Compile and check a candidate", ENSURES)
