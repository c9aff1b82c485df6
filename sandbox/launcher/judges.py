"""Judges: one warm per device. Starting one costs an import of torch and the oracle's outputs; keeping one costs memory."""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hiera_mcp.errors import LostError, SandboxError, TaskError
from hiera_mcp.model.work import JudgeReport
from hiera_mcp.sandbox.child.wire import Closed, Malformed
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.sandbox.isolation import process
from hiera_mcp.sandbox.isolation.box import BoxSpec, Isolation, Outcome
from hiera_mcp.sandbox.isolation.process import BoxProcess
from hiera_mcp.sandbox.launcher.channel import Channel
from hiera_mcp.sandbox.launcher.verdict import signal_name, tail
from hiera_mcp.sandbox.launcher.work import WorkRoot

READY_S = 120.0
"""Longest start of a judge: importing torch from a cold disk, and a CUDA context."""
IDLE_S = 300.0
REPORT_BYTES = 4 << 20


SpecOf = Callable[[Path, int, str], BoxSpec]
"""From a fresh work folder, the judge's descriptor and its device to its box."""


class JudgeLost(Exception):
    """The judge ended or spoke nonsense; the caller decides whether to try another one."""


@dataclass(frozen=True)
class Ready:
    """What a judge says of itself when it is ready."""

    device_name: str = ""
    torch: str | None = None
    driver: str | None = None
    cuda: str | None = None

    @property
    def facts(self) -> dict[str, str]:
        """The fields of a Device that only the judge knows."""
        known = {"torch": self.torch, "driver": self.driver, "cuda": self.cuda}
        return {name: value for name, value in known.items() if value}


class Judge:
    """One running judge and the channel to it."""

    def __init__(self, contract: str, box: BoxProcess, channel: Channel, ready: Ready, work: Path) -> None:
        self.contract = contract
        self.ready = ready
        self.work = work
        self._box = box
        self._channel = channel
        self._jobs = 0

    async def judge(self, order: dict[str, Any], runner_fd: int) -> str:
        """Hand over one candidate; `runner_fd` is the judge's end of the socketpair to the runner. Returns the job's name.

        Raises:
            JudgeLost: it is gone.
        """
        self._jobs += 1
        job = f"j{self._jobs}"
        try:
            await self._channel.send({"op": "judge", "job": job, **order}, (runner_fd,))
        except Closed as e:
            raise JudgeLost from e
        return job

    async def report(self, job: str, on_progress: Notify) -> JudgeReport:
        """Wait for the report on `job`; `on_progress` hears what it says meanwhile.

        Raises:
            JudgeLost: it ended, or said what is not in the protocol.
            SandboxError: it says that it, or the reference, failed.
            TaskError: it says that no candidate can be judged for this task.
        """
        while True:
            message = await self._receive(job)
            if message.get("event") == "progress":
                fraction = message.get("fraction")
                told = float(fraction) if isinstance(fraction, int | float) else None
                await on_progress(str(message.get("message", "")), told)
            elif message.get("event") == "failed" and message.get("todo"):
                raise TaskError(str(message.get("error")), todo=str(message.get("todo")))
            elif message.get("event") == "failed":
                raise SandboxError(f"The judge could not judge: {message.get('error')}", todo=FAILED_TODO)
            elif message.get("event") == "report":
                return _report(message)

    async def _receive(self, job: str) -> dict[str, Any]:
        try:
            while (message := await self._channel.receive(REPORT_BYTES)).get("job") != job:
                pass
        except (Closed, Malformed) as e:
            raise JudgeLost(str(e)) from e
        return message

    async def end(self) -> Outcome:
        """End it and everything it started; how it ended, for the message."""
        self._channel.abort()
        await self._box.kill()
        return await self._box.wait()


FAILED_TODO = "Check that the reference runs on this device and in this memory (see `hiera-mcp doctor`)."


def _report(message: dict[str, Any]) -> JudgeReport:
    try:
        return JudgeReport.model_validate(message.get("report"))
    except ValidationError as e:
        raise JudgeLost(f"a report that is none: {e}") from e


class Judges:
    """At most one warm judge per device. Use only while holding the device's lock."""

    def __init__(self, work: WorkRoot, idle_s: float = IDLE_S) -> None:
        self._work = work
        self._idle_s = idle_s
        self._warm: dict[str, Judge] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def take(self, device: str, contract: str, isolation: Isolation, spec: SpecOf) -> Judge:
        """The judge for `contract` on `device`; a warm one for another contract is ended first.

        It belongs to the caller until `keep` or `drop`.

        Raises:
            LostError: it did not start.
        """
        self._stop_timer(device)
        judge = self._warm.pop(device, None)
        if judge is not None and judge.contract == contract:
            return judge
        if judge is not None:
            await self.drop(judge)
        return await self._start(device, contract, isolation, spec)

    def keep(self, device: str, judge: Judge) -> None:
        """Give a healthy judge back; it is ended when nobody takes it for a while."""
        self._warm[device] = judge
        self._timers[device] = asyncio.get_running_loop().call_later(self._idle_s, self._expire, device)

    async def drop(self, judge: Judge) -> Outcome:
        """End a judge that is not wanted any more, or not healthy."""
        try:
            return await judge.end()
        finally:
            self._work.discard(judge.work)

    async def close(self) -> None:
        for device in list(self._warm):
            self._stop_timer(device)
        judges = list(self._warm.values())
        self._warm.clear()
        await asyncio.gather(*(self.drop(j) for j in judges), *self._ending)

    def _stop_timer(self, device: str) -> None:
        if timer := self._timers.pop(device, None):
            timer.cancel()

    def _expire(self, device: str) -> None:
        self._timers.pop(device, None)
        judge = self._warm.pop(device, None)
        if judge is not None:
            task = asyncio.create_task(self._forget(judge))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _forget(self, judge: Judge) -> None:
        await self.drop(judge)

    async def _start(self, device: str, contract: str, isolation: Isolation, spec: SpecOf) -> Judge:
        work = self._work.make("judge")
        ours, theirs = socket.socketpair()
        with theirs:
            box = await process.start(isolation, spec(work, theirs.fileno(), device))
        ours.setblocking(False)
        channel = await Channel.open(ours)
        try:
            ready = await asyncio.wait_for(_ready(channel), READY_S)
        except BaseException as e:
            channel.abort()
            await box.kill()
            outcome = await box.wait()
            self._work.discard(work)
            if isinstance(e, Closed | Malformed | TimeoutError):
                raise _not_started(outcome) from e
            raise
        return Judge(contract, box, channel, ready, work)


async def _ready(channel: Channel) -> Ready:
    message = await channel.receive(REPORT_BYTES)
    if message.get("event") != "ready":
        raise Malformed(f"expected `ready`, got {str(message)[:200]}")
    said = {name: message.get(name) for name in ("torch", "driver", "cuda")}
    return Ready(str(message.get("device_name") or ""), **{k: None if v is None else str(v) for k, v in said.items()})


def _not_started(outcome: Outcome) -> LostError:
    return LostError(
        f"The judge did not start: {ending(outcome)}.",
        todo="Run `hiera-mcp doctor`; it says what is missing on this host.",
    )


def ending(outcome: Outcome) -> str:
    """How a process of ours ended, with its last words."""
    how = {
        "exit": f"it exited with status {outcome.code}",
        "signal": f"it was ended by {signal_name(outcome.code)}",
        "killed": f"it gave no answer for {outcome.seconds:.0f} s",
    }.get(outcome.ended, outcome.ended.replace("_", " "))
    words = tail(outcome.output)
    return f"{how}; its last output: {words}" if words else how
