"""Start a boxed process, watch its limits, and make sure that nothing of it is left.

Runs in the single-threaded launcher. PDEATHSIG follows the *thread* that spawned a process, so `start` must never be
called from a worker thread.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Collection

from hiera_mcp.errors import LostError, SandboxError
from hiera_mcp.sandbox.child.prctl import PR_SET_CHILD_SUBREAPER, prctl
from hiera_mcp.sandbox.child.tree import children, kill_descendants, signal_process
from hiera_mcp.sandbox.isolation.box import BOX, BoxSpec, Command, Isolation, Outcome
from hiera_mcp.sandbox.isolation.ending import Ending, Stop, interpret, status_value
from hiera_mcp.sandbox.isolation.events import ChildExit, PipeReader, peak_of
from hiera_mcp.sandbox.isolation.output import Output
from hiera_mcp.sandbox.isolation.usage import Watch

_KILL_POLL_S = 0.005
_UNKILLABLE_S = 15.0
"""A process that waits inside a driver can ignore even SIGKILL: never wait for it for ever."""
_STATUS_BYTES = 64 << 10


class StuckError(LostError):
    """Processes of a box do not react to SIGKILL."""

    def __init__(self, pids: Collection[int]) -> None:
        self.pids = tuple(pids)
        numbers = ", ".join(map(str, self.pids))
        super().__init__(
            f"A sandboxed process does not react to SIGKILL (pid {numbers}); it is stuck in the kernel or in a driver.",
            todo="Look at `dmesg`; on a GPU host reset the GPU or restart the host.",
        )


async def run(isolation: Isolation, spec: BoxSpec, timeout_s: float) -> Outcome:
    """Start a box and wait for its end; it is killed when the time is over. See `BoxProcess.wait`."""
    return await (await start(isolation, spec)).wait(timeout_s)


async def start(isolation: Isolation, spec: BoxSpec) -> "BoxProcess":
    """Start a box. The caller awaits `wait` or `kill` sooner or later.

    Raises:
        SandboxError: the box cannot be made on this host.
    """
    isolation.prepare(spec)
    become_subreaper()
    command = isolation.command(spec)
    read_fd, write_fd = os.pipe()
    try:
        child = _spawn(command, write_fd)
    except OSError as e:
        for fd in (read_fd, command.status_fd):
            os.close(fd)
        raise SandboxError(f"{isolation.name} could not start: {e}.", todo="Run `hiera-mcp doctor`.") from e
    finally:
        for fd in (write_fd, *command.owned_fds):
            os.close(fd)
    return BoxProcess(spec, command, child, read_fd)


def become_subreaper() -> None:
    """Orphans of this process's children become children of this process, so that they can be found and reaped."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


class BoxProcess:
    """A running box."""

    def __init__(self, spec: BoxSpec, command: Command, child: int, output_fd: int) -> None:
        self.pid = child
        self._spec = spec
        self._command = command
        self._started = time.monotonic()
        self._stopped: Stop | None = None
        self._seconds = 0.0
        self._peak_bytes = 0
        self._wake = asyncio.Event()
        self._orphans: set[int] = set()
        self._output = Output()
        self._status = bytearray()
        self._pipes = (PipeReader(output_fd, self._on_output), PipeReader(command.status_fd, self._on_status))
        self._exit = ChildExit(child, self._wake.set)
        self._watch = Watch(child, spec.work, spec.limits, own_processes=command.own_processes)
        self._supervisor = asyncio.get_running_loop().create_task(self._supervise())

    async def wait(self, timeout_s: float | None = None) -> Outcome:
        """The end of the box; nothing of it runs any more. After `timeout_s` seconds from now it is killed. Cancelling
        kills it too.

        Raises:
            SandboxError: the box could not be set up, so that the program never ran.
            LostError: it cannot be killed.
        """
        if not await self._ended(timeout_s):
            self._stop("timeout")
            await self._ended(None)
        return self._supervisor.result()

    async def kill(self) -> None:
        """Kill every process of the box and wait until they are gone. Does nothing when it has ended.

        Raises:
            LostError: it cannot be killed.
        """
        self._stop("killed")
        await self._ended(None)
        error = self._supervisor.exception()
        if isinstance(error, LostError):
            raise error

    async def _ended(self, timeout_s: float | None) -> bool:
        try:
            done, _ = await asyncio.wait({self._supervisor}, timeout=timeout_s)
        except asyncio.CancelledError:
            self._stop("killed")
            await asyncio.wait({self._supervisor})
            raise
        return bool(done)

    def forget_output(self) -> None:
        """What it wrote so far belongs to an earlier job."""
        self._output = Output()

    def _stop(self, reason: Stop) -> None:
        if self._stopped is None:
            self._stopped = reason
            self._wake.set()

    def _on_output(self, data: bytes) -> None:
        self._output.add(data)
        if self._output.total > self._spec.limits.output_bytes:
            self._stop("output_limit")

    def _on_status(self, data: bytes) -> None:
        self._status += data[: _STATUS_BYTES - len(self._status)]

    async def _supervise(self) -> Outcome:
        try:
            await self._until_exit()
            self._seconds = time.monotonic() - self._started
            await self._until_gone()
        except (
            BaseException
        ):  # whatever it is (the event loop is closing, the work folder vanished): leave nothing behind
            self._kill_now()
            raise
        finally:
            for pipe in self._pipes:
                pipe.finish()
        return self._outcome()

    async def _until_exit(self) -> None:
        delay, killing_since = self._watch.pause_s, 0.0
        while self._exit.returncode is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), delay)
            self._wake.clear()
            self._stopped = self._stopped or self._watch.breach()
            delay = _KILL_POLL_S if self._stopped else self._watch.pause_s
            if self._stopped:
                self._kill_step()
                killing_since = killing_since or time.monotonic()
                self._give_up_after(killing_since)

    def _kill_step(self) -> None:
        """One round of killing; to be repeated until the first process is gone."""
        if self._exit.poll():
            return
        if self._command.pid_namespace:
            signal_process(self.pid, signal.SIGSTOP)  # it must not make another child behind our back
            self._orphans.update(children(self.pid))
            signal_process(self.pid, signal.SIGKILL)
        elif kill_descendants(self.pid) == 0:
            signal_process(self.pid, signal.SIGKILL)

    async def _until_gone(self) -> None:
        """The first process is gone. The box's own init is our child now: its end is the end of the pid namespace."""
        self._note_init()
        since, delay = time.monotonic(), 0.0005
        while self._reap_orphans():
            self._give_up_after(since)
            await asyncio.sleep(delay)
            delay = min(2 * delay, 0.02)

    def _note_init(self) -> None:
        self._pipes[1].finish()
        init = status_value(self._status.decode("ascii", "replace"), "child-pid")
        if init is not None and self._command.pid_namespace:
            self._orphans.add(init)

    def _reap_orphans(self) -> bool:
        """Kill and reap the children that the first process left; whether there are some still."""
        self._orphans = {pid for pid in self._orphans if not self._reap(pid)}
        return bool(self._orphans)

    def _reap(self, pid: int) -> bool:
        try:
            ended, _, spent = os.wait4(pid, os.WNOHANG)
        except ChildProcessError:
            return True  # its parent reaped it before ending itself
        if ended == 0:
            os.kill(pid, signal.SIGKILL)  # ours and not reaped: the number cannot belong to anyone else
            return False
        self._peak_bytes = max(self._peak_bytes, peak_of(spent))
        return True

    def _kill_now(self) -> None:
        """Kill without waiting for events."""
        since = time.monotonic()
        while not self._exit.poll():
            self._kill_step()
            self._give_up_after(since)
            time.sleep(_KILL_POLL_S)
        self._note_init()
        while self._reap_orphans():
            self._give_up_after(since)
            time.sleep(_KILL_POLL_S)

    def _give_up_after(self, since: float) -> None:
        if time.monotonic() - since > _UNKILLABLE_S:
            raise StuckError({*self._orphans, *(() if self._exit.returncode is not None else (self.pid,))})

    def _outcome(self) -> Outcome:
        assert self._exit.returncode is not None
        text = self._output.text()
        peak = max(self._peak_bytes, self._exit.peak_bytes)
        ending = Ending(self._stopped, self._exit.returncode, self._status.decode("ascii", "replace"), peak)
        ended, code = interpret(ending, self._spec.limits, text)
        shown = text.replace(str(self._spec.work), BOX)
        return Outcome(ended, code, shown, self._output.total, self._seconds)


def _spawn(command: Command, output_fd: int) -> int:
    child = subprocess.Popen(
        command.argv,
        stdin=subprocess.DEVNULL,
        stdout=output_fd,
        stderr=output_fd,
        env=dict(command.env),
        cwd="/",
        pass_fds=command.fds,
        start_new_session=True,
    )
    child.returncode = 0  # reaped by ChildExit; without this the object would wait for the process itself
    return child.pid
