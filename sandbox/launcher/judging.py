"""Have a built candidate judged: device lock, warm judge, fresh runner, deadlines, and nothing left afterwards."""

import asyncio
import contextlib
import shutil
import socket
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hiera_mcp.errors import LostError, SandboxError, TaskError
from hiera_mcp.model.evaluation import Evaluation
from hiera_mcp.model.sanitizer import SanitizeRequest, SanitizerTool
from hiera_mcp.model.space import MODEL_FILE
from hiera_mcp.model.work import EvaluateRequest, JudgeReport, ProfileRequest
from hiera_mcp.sandbox.child.leftovers import read_result
from hiera_mcp.sandbox.compilers.build import Built
from hiera_mcp.sandbox.devices import gpu_named
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.sandbox.isolation import process
from hiera_mcp.sandbox.isolation.box import Bind, BoxSpec, Outcome
from hiera_mcp.sandbox.isolation.process import BoxProcess
from hiera_mcp.sandbox.launcher import boxes
from hiera_mcp.sandbox.launcher.gate import gate
from hiera_mcp.sandbox.launcher.host import Host
from hiera_mcp.sandbox.launcher.judges import Judge, JudgeLost, Ready
from hiera_mcp.sandbox.launcher.verdict import judged
from hiera_mcp.sandbox.launcher.warm import ending

GRACE_S = 30.0
"""So long may the judge take to notice that its runner is gone: it may be in the middle of the reference."""
SETTLE_S = 2.0
"""So long may a runner take to end after it closed its channel; then it is ended."""
FINISH_S = 30.0
"""So long may a tool around the runner take to write what it found once the runner has ended."""
CHECKED = 60
"""So much longer than in an evaluation may a call take under compute-sanitizer."""
REPLAYS = 40
"""Nsight Compute repeats each launch about so often, once per group of counters, and saves its memory meanwhile."""
ATTEMPTS = 2
"""A judge that dies takes no candidate with it: once more, with a fresh one."""


@dataclass(frozen=True)
class Checker:
    """A tool of compute-sanitizer."""

    program: Path
    tool: SanitizerTool


@dataclass(frozen=True)
class Job:
    """One candidate to judge."""

    host: Host
    request: EvaluateRequest | ProfileRequest | SanitizeRequest
    built: Built
    device: str
    notify: Notify
    ncu: Path | None = None
    """Nsight Compute, where it shall look at one call; nothing is timed then, and no verdict is reached."""
    counts: bool = False
    """Whether the processor's counters shall be read around one call; as with Nsight Compute."""
    checker: Checker | None = None
    """The same for compute-sanitizer, which looks at a call of each case."""

    @property
    def watched(self) -> bool:
        """Whether a tool runs around the runner."""
        return self.ncu is not None or self.counts or self.checker is not None

    @property
    def gated(self) -> bool:
        """Whether the judge may hold the runner's box still: not beside a tool that watches the runner. On a GPU that stops
        the threads which would launch more, not what they have launched."""
        return not self.watched

    @property
    def builds_extension(self) -> bool:
        """A ModelNew that compiles an extension by itself needs a compiler in its box, and time."""
        return "cpp_extension" in self.request.sources.get(MODEL_FILE, "")

    @property
    def binds(self) -> tuple[Bind, ...]:
        """What the runner's box shows for this candidate."""
        return boxes.candidate_binds(self.request.contract.target, self.builds_extension)

    @property
    def order(self) -> dict[str, Any]:
        """The message to the judge, but for the job's name."""
        limits = self.request.limits
        protocol = self.request.protocol if isinstance(self.request, EvaluateRequest) else "hiera"
        return {
            "op": "sanitize" if self.checker else "profile" if self.ncu or self.counts else "judge",
            "contract_id": self.request.contract.id,
            "contract": self.request.contract.model_dump(mode="json"),
            "candidate": {"kind": self.built.kind},
            "gated": self.gated,
            "options": {
                "protocol": protocol,
                "call_s": limits.call_s * self.slowdown,
                "load_s": self.load_s,
                "rounds_s": limits.rounds_s,
            },
        }

    def spec(self, folder: Path, fd: int) -> BoxSpec:
        """The runner's box around `folder`, which holds the built candidate; `fd` is its channel to the judge."""
        runner = boxes.runner(folder, fd, self.device, self.request.limits, self.binds)
        if self.checker is not None:
            return boxes.sanitizer(runner, self.checker.program, self.checker.tool)
        if self.ncu is None:
            return replace(runner, profiler=self.counts)
        gpu = gpu_named(self.device)
        return boxes.profiler(runner, self.ncu, gpu.compute_capability[0] if gpu else None)

    @property
    def slowdown(self) -> int:
        return CHECKED if self.checker else REPLAYS if self.ncu else 1

    @property
    def load_s(self) -> float:
        load_s = max(self.request.limits.load_s, 300.0) if self.builds_extension else self.request.limits.load_s
        return load_s * self.slowdown if self.checker else load_s


@dataclass(frozen=True)
class Ended:
    """A runner's work, as the judge and the launcher saw it."""

    report: JudgeReport
    outcome: Outcome
    deadline: str | None
    """Which deadline passed, in words."""
    ready: Ready
    """What the judge said of the device."""
    ncu_report: bytes | None = None
    """What Nsight Compute wrote, if it was there."""
    ncu_log: str = ""
    """What it said."""
    checker_log: str = ""
    """What compute-sanitizer printed, if it was there."""


async def judge(job: Job) -> tuple[Evaluation, Ready]:
    """The evaluation of a candidate that was built, without its build and device, and what the judge said of the device.

    Raises:
        SandboxError: the judge or the reference failed; the candidate is not to blame.
        TaskError: the task lets a trivial answer pass, so that no candidate can be judged.
    """
    ended = await run(job)
    return judged(ended.report, ended.outcome, ended.deadline), ended.ready


async def run(job: Job) -> Ended:
    """Have the judge do its work with the candidate in a fresh runner.

    Raises:
        SandboxError: the judge or the reference failed; the candidate is not to blame.
        TaskError: the task lets a trivial answer pass, so that no candidate can be judged.
    """
    async with job.host.locks.measuring(job.device, job.notify):
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await _with_judge(job)
            except JudgeLost as e:
                if attempt == ATTEMPTS:
                    raise LostError(f"The judge was lost twice: {e}.", todo="Run `hiera-mcp doctor`.") from e
                await job.notify("the judge was lost; starting a fresh one", None)
    raise AssertionError("unreachable")


async def _with_judge(job: Job) -> Ended:
    async with judge_for(job) as found:
        return await _with_runner(job, found)


@contextlib.asynccontextmanager
async def judge_for(job: Job) -> AsyncGenerator[Judge]:
    """A judge for the job; kept warm after a clean end or a refusal of the task, ended after any other."""
    await job.notify(f"getting a judge on {job.device}", None)
    judges = job.host.judges
    found = await judges.take(job.device, job.request.contract.id, job.host.isolation)
    try:
        yield found
    except JudgeLost as e:
        raise JudgeLost(ending(await found.end())) from e
    except TaskError:
        judges.keep(job.device, found)
        raise
    except BaseException:
        await found.end()
        raise
    judges.keep(job.device, found)


@dataclass(frozen=True)
class Runner:
    """A started runner, and the judge's ends of its channel and of the gate to its box."""

    box: BoxProcess
    folder: Path
    channel: socket.socket
    gate: socket.socket

    def handed_over(self) -> None:
        """The judge has the ends: here they are closed, so that it sees when the others close theirs."""
        self.channel.close()
        self.gate.close()


@contextlib.asynccontextmanager
async def runner_for(job: Job) -> AsyncGenerator[Runner]:
    """A fresh runner beside the built candidate; no process of it is left afterwards."""
    with job.host.work.folder("runner") as folder:
        _copy(job.built.folder, folder)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            box = await process.start(job.host.isolation, job.spec(folder, theirs.fileno()))
            theirs.close()
            try:
                with gate(box.pid) as held:
                    yield Runner(box, folder, ours, held)
            finally:
                await box.kill()


async def _with_runner(job: Job, found: Judge) -> Ended:
    async with runner_for(job) as runner:
        ends = (runner.channel, runner.gate) if job.gated else (runner.channel,)
        name = await found.judge(job.order, [end.fileno() for end in ends])
        runner.handed_over()
        report, deadline = await _follow(job, found, name, runner.box)
        await runner.box.kill()
        ended = Ended(report, await runner.box.wait(), deadline, found.ready)
        return _with_files(ended, runner.folder) if job.watched else ended


def _with_files(ended: Ended, folder: Path) -> Ended:
    """With what a tool around the runner has left."""
    logs = (read_result(folder / name) or b"" for name in (boxes.NCU_LOG, boxes.CHECKER_LOG))
    said, checked = (log.decode(errors="replace") for log in logs)
    return replace(ended, ncu_report=read_result(folder / boxes.NCU_REPORT), ncu_log=said, checker_log=checked)


async def _follow(job: Job, found: Judge, name: str, box: BoxProcess) -> tuple[JudgeReport, str | None]:
    """Wait for the report, the runner's end or the deadline; the report, and which deadline passed."""
    last = "starting"

    async def on_progress(message: str, fraction: float | None) -> None:
        nonlocal last
        last = message
        await job.notify(message, fraction)

    total_s = job.request.limits.total_s
    reporting = asyncio.create_task(found.report(name, on_progress))
    running = asyncio.create_task(box.wait())
    try:
        done, _ = await asyncio.wait((reporting, running), timeout=total_s, return_when=asyncio.FIRST_COMPLETED)
        deadline = None if done else f"not done within {total_s:g} s; last: {last}"
        if not done:
            await box.kill()
        await asyncio.wait((reporting,), timeout=GRACE_S)
        if not reporting.done():
            raise _busy(last)
        report = reporting.result()
        if job.watched or report.outcome == "runner_lost":
            await asyncio.wait((running,), timeout=FINISH_S if job.watched else SETTLE_S)
        return report, deadline
    finally:
        reporting.cancel()
        running.cancel()
        await asyncio.wait((reporting, running))


def _busy(last: str) -> SandboxError:
    return SandboxError(
        f"The judge did not end its work ({last}), though the candidate's process was gone for {GRACE_S:g} s.",
        todo="The reference is too slow for this limit: use smaller shapes, or raise `total_s`.",
    )


def _copy(source: Path, folder: Path) -> None:
    """A private copy of what was built, so that no runner sees, or changes, what another one loads."""
    for path in source.iterdir():
        if path.is_file() and not path.is_symlink() and (path.suffix == ".so" or path.name == MODEL_FILE):
            shutil.copyfile(path, folder / path.name)
            (folder / path.name).chmod(0o644)
