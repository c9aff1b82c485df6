"""The executor on this host: one launcher process, started when first needed, that serves all requests at once."""

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import IO, Any, TypeVar

import anyio

import hiera_mcp
from hiera_mcp.errors import LostError, SandboxError, error_from_dict
from hiera_mcp.model.base import Model
from hiera_mcp.model.evaluation import Evaluation, NotRun
from hiera_mcp.model.profile import Profiled
from hiera_mcp.model.sanitizer import Sanitized, SanitizeRequest
from hiera_mcp.model.work import (
    CheckReport,
    CheckRequest,
    CompareRequest,
    DoctorReport,
    EvaluateRequest,
    HostRates,
    PairReport,
    ProfileRequest,
    Trace,
    TraceRequest,
)
from hiera_mcp.sandbox.child.wire import Closed, Malformed
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.sandbox.launcher.channel import Channel

CONFIRM_S = 10.0
"""So long may the launcher take to confirm that a cancelled request is gone; a launcher that does not is ended."""
CLOSE_S = 0.2
"""So long may the launcher take to clean up at the end. Clients kill a server 0.5 s after they ask it to stop."""

T = TypeVar("T", bound=Model)
Message = dict[str, Any]
RESULTS: dict[str, type[Model]] = {
    cls.__name__: cls
    for cls in (Trace, HostRates, CheckReport, Evaluation, NotRun, PairReport, Profiled, Sanitized, DoctorReport)
}


class LocalExecutor:
    """Implements `Executor` with a launcher on this host. Needs asyncio, or anyio's asyncio backend."""

    def __init__(self, *, cache_dir: Path, unsafe: bool = False) -> None:
        """
        Args:
            cache_dir: folder of the compile cache.
            unsafe: run untrusted code without isolation where no backend works.
        """
        self._unsafe = unsafe
        self._cache = cache_dir
        self._starting = asyncio.Lock()
        self._launcher: _Launcher | None = None
        self._closed = False

    async def trace(self, request: TraceRequest, notify: Notify) -> Trace:
        return _expect(Trace, await self._ask("trace", request, notify))

    async def host_rates(self, notify: Notify) -> HostRates:
        return _expect(HostRates, await self._ask("host_rates", {}, notify))

    async def check(self, request: CheckRequest, notify: Notify) -> CheckReport:
        only = request.model_dump(mode="json", include=set(CheckRequest.model_fields))  # it may be an EvaluateRequest
        return _expect(CheckReport, await self._ask("check", only, notify))

    async def evaluate(self, request: EvaluateRequest, notify: Notify) -> Evaluation | NotRun:
        result = await self._ask("evaluate", request, notify)
        return result if isinstance(result, NotRun) else _expect(Evaluation, result)

    async def compare(self, request: CompareRequest, notify: Notify) -> PairReport:
        return _expect(PairReport, await self._ask("compare", request, notify))

    async def profile(self, request: ProfileRequest, notify: Notify) -> Profiled:
        return _expect(Profiled, await self._ask("profile", request, notify))

    async def sanitize(self, request: SanitizeRequest, notify: Notify) -> Sanitized:
        return _expect(Sanitized, await self._ask("sanitize", request, notify))

    async def doctor(self, thorough: bool = False) -> DoctorReport:
        return _expect(DoctorReport, await self._ask("doctor", {"thorough": thorough}, _ignore))

    async def close(self) -> None:
        """End the launcher and everything below it. Requests that wait get a LostError. May be called twice."""
        self._closed = True
        launcher, self._launcher = self._launcher, None
        if launcher is not None:
            await launcher.close()

    async def _ask(self, op: str, request: Model | Message, notify: Notify) -> Model:
        plain = request.model_dump(mode="json") if isinstance(request, Model) else request
        launcher = await self._running()
        async with launcher.request(op, plain) as answers:
            return await _result(answers, notify)

    async def _running(self) -> "_Launcher":
        """The launcher; a new one when there is none or it died."""
        async with self._starting:
            if self._closed:
                raise LostError("The executor is closed.", todo="Start the server again.")
            if self._launcher is None or self._launcher.lost:
                self._launcher = await _Launcher.start(self._unsafe, self._cache)
            return self._launcher


class _Launcher:
    """One launcher, by its guardian's process, and the requests that it works on."""

    def __init__(self, process: asyncio.subprocess.Process, pidfd: int, channel: Channel, log: IO[bytes]) -> None:
        self._process = process
        self._pidfd = pidfd
        self._channel = channel
        self._log = log
        self._numbers = itertools.count(1)
        self._inboxes: dict[int, asyncio.Queue[Message]] = {}
        self.lost = False
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, unsafe: bool, cache: Path) -> "_Launcher":
        """Start the process in a session of its own: Ctrl-C in a terminal reaches the server alone, which closes it."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        log = tempfile.TemporaryFile(prefix="hiera-launcher-log-")  # noqa: SIM115 - lives as long as the process
        with theirs:
            try:
                process = await asyncio.create_subprocess_exec(
                    *launcher_argv(theirs.fileno(), unsafe, cache),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                    env=launcher_environment(),
                )
                pidfd = os.pidfd_open(process.pid)
            except OSError as e:
                ours.close()
                raise LostError(f"The launcher cannot be started: {e}.", todo="Check this Python installation.") from e
        return cls(process, pidfd, await Channel.open(ours), log)

    @contextlib.asynccontextmanager
    async def request(self, op: str, request: Message) -> AsyncGenerator[asyncio.Queue[Message]]:
        """Send a request; the queue receives what comes back. Leaving early cancels it, and waits until it is gone."""
        number = next(self._numbers)
        answers = self._inboxes[number] = asyncio.Queue()
        try:
            await self._send({"id": number, "op": op, "request": request})
            yield answers
        except BaseException:
            if number in self._inboxes:
                await self._cancel(number, answers)
            raise
        finally:
            self._inboxes.pop(number, None)

    async def close(self) -> None:
        """The launcher sees the end of its channel, ends all boxes and exits; if it is too slow, it is killed."""
        self._channel.abort()
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(CLOSE_S):
                await self._process.wait()
            self._end()
            await self._reading

    async def _send(self, message: Message) -> None:
        try:
            await self._channel.send(message)
        except Closed as e:
            raise self._lost_error() from e

    async def _cancel(self, number: int, answers: asyncio.Queue[Message]) -> None:
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(CONFIRM_S) as scope, contextlib.suppress(LostError):
                await self._send({"id": number, "op": "cancel"})
                while not _ends(await answers.get()):
                    pass
            if scope.cancelled_caught:
                self._end()

    async def _read(self) -> None:
        """Deliver what the launcher says; at its end, tell all who wait."""
        try:
            while True:
                message = await self._channel.receive()
                inbox = self._inboxes.get(message["id"])
                if inbox is not None:
                    inbox.put_nowait(message)
                    if _ends(message):
                        del self._inboxes[message["id"]]
        except (Closed, Malformed):
            self.lost = True
        self._channel.abort()
        self._end()
        await self._process.wait()
        os.close(self._pidfd)
        error = self._lost_error().as_dict()
        for inbox in self._inboxes.values():
            inbox.put_nowait({"event": "error", "error": error})
        self._log.close()

    def _end(self) -> None:
        """Have the guardian kill the launcher and all below it, then end itself (see `launcher/guardian.py`).

        Not by `Process.terminate`: that polls first, and may so take the process's end from asyncio, which then complains.
        """
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGTERM)

    def _lost_error(self) -> LostError:
        words = _last_words(self._log)
        said = f" Its last words: {words}" if words else ""
        return LostError(
            f"The launcher ended in the middle of the work.{said}",
            todo="Submit the work again: a new launcher is started for it.",
        )


def launcher_argv(fd: int, unsafe: bool, cache: Path) -> tuple[str, ...]:
    module = "hiera_mcp.sandbox.launcher"
    argv = (sys.executable, "-P", "-m", module, "--fd", str(fd), "--cache", str(cache))
    return (*argv, "--unsafe") if unsafe else argv


def launcher_environment() -> dict[str, str]:
    """This process's environment; the launcher imports the same hiera_mcp, wherever this process found it."""
    root = str(Path(hiera_mcp.__file__).parent.parent)
    rest = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{rest}" if rest else root}


async def _result(answers: asyncio.Queue[Message], notify: Notify) -> Model:
    while not _ends(message := await answers.get()):
        await notify(message["message"], message["fraction"])
    if message["event"] == "error":
        raise error_from_dict(message["error"])
    if message["event"] == "cancelled":
        raise LostError("The launcher gave the work up.", todo="Submit the work again.")
    return RESULTS[message["type"]].model_validate(message["result"])


def _ends(message: Message) -> bool:
    return message["event"] != "progress"


def _expect(cls: type[T], result: Model) -> T:
    if not isinstance(result, cls):
        raise SandboxError(f"The launcher answered with {type(result).__name__} instead of {cls.__name__}.")
    return result


def _last_words(log: IO[bytes], size: int = 2000) -> str:
    if log.closed:
        return ""
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - size))
    return log.read().decode(errors="replace").strip()


async def _ignore(message: str, fraction: float | None) -> None:
    """For requests whose progress nobody wants."""
