"""Have two built candidates timed against each other: one judge, two fresh runners, one session."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence

from pydantic import ValidationError

from hiera_mcp.model.work import CompareRequest, EvaluateRequest, PairReport
from hiera_mcp.sandbox.devices import device_for
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.sandbox.launcher.building import build
from hiera_mcp.sandbox.launcher.host import Host, device_of
from hiera_mcp.sandbox.launcher.judges import Judge, JudgeLost
from hiera_mcp.sandbox.launcher.judging import GRACE_S, Job, Runner, judge_for, runner_for
from hiera_mcp.sandbox.launcher.verdict import not_built


async def compare(host: Host, request: CompareRequest, notify: Notify) -> PairReport:
    """Both are built (or taken from the cache) and timed in turns; a report with a reason where that was not possible.

    Raises:
        SandboxError: a process of ours, or the reference, failed.
    """
    target = request.contract.target
    device = device_for(target, request.device)
    if device is None:
        return PairReport(reason=f"this host has no GPU that can run {target}")
    orders = [_evaluation(request), _evaluation(request, of_other=True)]
    built = [await build(host, order, notify) for order in orders]
    here = device_of(host, target, device)
    for which, one in zip(("this candidate", "the other candidate"), built, strict=True):
        if (why := not_built(one, here)) is not None:
            return PairReport(reason=f"{which}: {why.reason}")
    jobs = [Job(host, order, one, device, notify) for order, one in zip(orders, built, strict=True)]
    async with host.locks.measuring(device, notify):
        try:
            async with judge_for(jobs[0]) as found, _runners(jobs) as runners:
                return await _report(request, jobs, found, runners)
        except JudgeLost as e:
            return PairReport(reason=f"the judge was lost: {e}")


def _evaluation(request: CompareRequest, of_other: bool = False) -> EvaluateRequest:
    """What an evaluation of one of the two would ask for."""
    space, sources = (request.other.space, request.other.sources) if of_other else (request.space, request.sources)
    return EvaluateRequest(
        contract=request.contract,
        files=request.files,
        space=space,
        sources=sources,
        limits=request.limits,
        device=request.device,
    )


@contextlib.asynccontextmanager
async def _runners(jobs: Sequence[Job]) -> AsyncGenerator[list[Runner]]:
    """A fresh runner for each job; no process of them is left afterwards."""
    async with contextlib.AsyncExitStack() as stack:
        yield [await stack.enter_async_context(runner_for(job)) for job in jobs]


async def _report(request: CompareRequest, jobs: Sequence[Job], found: Judge, runners: Sequence[Runner]) -> PairReport:
    """What the judge says, within the time that an evaluation may take."""
    ends = [r.channel for r in runners] + ([r.gate for r in runners] if jobs[0].gated else [])
    name = await found.compare(_order(request, jobs), [end.fileno() for end in ends])
    for runner in runners:
        runner.handed_over()
    reporting = asyncio.create_task(found.answer(name, jobs[0].notify))
    try:
        done, _ = await asyncio.wait((reporting,), timeout=request.limits.total_s)
        if not done:
            await asyncio.gather(*(r.box.kill() for r in runners))
            await asyncio.wait((reporting,), timeout=GRACE_S)
            return PairReport(reason=f"not done within {request.limits.total_s:g} s")
        return PairReport.model_validate(reporting.result().get("report"))
    except ValidationError as e:
        raise JudgeLost(f"a report that is none: {e}") from e
    finally:
        reporting.cancel()
        await asyncio.wait((reporting,))


def _order(request: CompareRequest, jobs: Sequence[Job]) -> dict[str, object]:
    """The message to the judge: that of an evaluation, but for two candidates."""
    order = jobs[0].order
    return {
        **order,
        "op": "compare",
        "candidates": [{"kind": job.built.kind} for job in jobs],
        "options": {**order["options"], "compare_s": request.compare_s},
    }
