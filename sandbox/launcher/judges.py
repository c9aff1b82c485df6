"""Judges: one warm per device. Starting one costs an import of torch and the oracle's outputs; keeping one costs memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from hiera_mcp.errors import SandboxError, TaskError
from hiera_mcp.model.work import JudgeReport
from hiera_mcp.sandbox.child.wire import Closed, Malformed
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.sandbox.isolation.box import Isolation, Outcome
from hiera_mcp.sandbox.launcher import boxes
from hiera_mcp.sandbox.launcher.warm import Shelf, WarmBox, open_box
from hiera_mcp.sandbox.launcher.work import WorkRoot

IDLE_S = 300.0
REPORT_BYTES = 4 << 20


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

    def __init__(self, contract: str, box: WarmBox) -> None:
        self.contract = contract
        self.ready = _said(box.ready)
        self._box = box
        self._jobs = 0

    async def judge(self, order: dict[str, Any], ends: Sequence[int]) -> str:
        """Hand over one candidate; `ends` are the judge's end of the socketpair to the runner and, where the order says
        `gated`, of the gate to its box. Returns the job's name.

        Raises:
            JudgeLost: it is gone.
        """
        return await self._hand_over({"op": "judge", **order}, tuple(ends))

    async def compare(self, order: dict[str, Any], ends: Sequence[int]) -> str:
        """Hand over two candidates to be timed against each other. Returns the job's name.

        Raises:
            JudgeLost: it is gone.
        """
        return await self._hand_over({"op": "compare", **order}, tuple(ends))

    async def _hand_over(self, order: dict[str, Any], fds: tuple[int, ...]) -> str:
        self._jobs += 1
        job = f"j{self._jobs}"
        try:
            await self._box.channel.send({**order, "job": job}, fds)
        except Closed as e:
            raise JudgeLost from e
        return job

    async def report(self, job: str, on_progress: Notify) -> JudgeReport:
        """Wait for the report on `job`, see `answer`."""
        return _report(await self.answer(job, on_progress))

    async def answer(self, job: str, on_progress: Notify) -> dict[str, Any]:
        """Wait for the message with the report on `job`; `on_progress` hears what it says meanwhile.

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
                return message

    async def _receive(self, job: str) -> dict[str, Any]:
        try:
            while (message := await self._box.channel.receive(REPORT_BYTES)).get("job") != job:
                pass
        except (Closed, Malformed) as e:
            raise JudgeLost(str(e)) from e
        return message

    async def end(self) -> Outcome:
        """End it and everything it started; how it ended, for the message."""
        return await self._box.end()


FAILED_TODO = "Check that the reference runs on this device and in this memory (see `hiera-mcp doctor`)."


def _report(message: dict[str, Any]) -> JudgeReport:
    try:
        return JudgeReport.model_validate(message.get("report"))
    except ValidationError as e:
        raise JudgeLost(f"a report that is none: {e}") from e


def _said(ready: dict[str, Any]) -> Ready:
    facts = {name: ready.get(name) for name in ("torch", "driver", "cuda")}
    return Ready(str(ready.get("device_name") or ""), **{k: None if v is None else str(v) for k, v in facts.items()})


class Judges:
    """At most one warm judge per device. Use only while holding the device's lock."""

    def __init__(self, work: WorkRoot, idle_s: float = IDLE_S) -> None:
        self._work = work
        self._shelf = Shelf[Judge](idle_s)

    async def take(self, device: str, contract: str, isolation: Isolation) -> Judge:
        """The judge for `contract` on `device`; a warm one for another contract is ended first.

        It belongs to the caller, who gives it back to `keep`, or ends it.

        Raises:
            LostError: it did not start.
        """
        judge = self._shelf.take(device)
        if judge is not None and judge.contract == contract:
            return judge
        if judge is not None:
            await judge.end()
        return Judge(contract, await open_box(isolation, self._work, "judge", lambda w, fd: boxes.judge(w, fd, device)))

    def keep(self, device: str, judge: Judge) -> None:
        """Give a healthy judge back; it is ended when nobody takes it for a while."""
        self._shelf.put(device, judge)

    async def close(self) -> None:
        await self._shelf.close()
