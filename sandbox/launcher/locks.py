"""One lock per device, shared by all servers of the host, so that no measurement disturbs another.

A device is measured under an exclusive lock. What loads the processors without measuring (compiling, say) shares the
lock of `cpu`. Every taker first passes a gate, and of each server only one stands there, while none of its own measures:
so a server with a long queue cannot starve the others.
"""

import asyncio
import contextlib
import fcntl
import os
import select
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path

from hiera_mcp.errors import LostError, SandboxError
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.sandbox.isolation.process import StuckError

POLL_S = 0.02
TELL_S = 5.0
"""Progress is repeated this often while waiting, so that clients do not give up."""


def default_folder() -> Path:
    """Shared by all users of the host; `/run/lock` where there is one, as for other device locks (FHS 3.0, 5.9)."""
    shared = Path("/run/lock")
    return shared if os.access(shared, os.W_OK | os.X_OK) else Path("/tmp")


class DeviceLocks:
    """The locks of the devices, as files in `folder`."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or default_folder()
        self._turns: dict[str, asyncio.Lock] = {}
        self._stuck: dict[str, list[int]] = {}
        """Device → descriptors of processes that could not be killed on it."""

    @contextlib.asynccontextmanager
    async def measuring(self, device: str, notify: Notify) -> AsyncGenerator[None]:
        """Hold `device` alone. Progress says that it waits, when it waits.

        Raises:
            LostError: an earlier process is stuck on this GPU; whatever were measured beside it would not be its own.
        """
        async with self._turn(device, notify):
            self._refuse_beside_stuck(device)
            with contextlib.ExitStack() as held:
                await self._enter(held, device, fcntl.LOCK_EX, notify)
                try:
                    yield
                except StuckError as e:
                    self._note_stuck(device, e.pids)
                    raise

    @contextlib.asynccontextmanager
    async def loading(self, notify: Notify) -> AsyncGenerator[None]:
        """Load the processors beside others that do, while nobody measures on them."""
        with contextlib.ExitStack() as held:
            async with self._turn("cpu", notify):
                await self._enter(held, "cpu", fcntl.LOCK_SH, notify)
            yield

    @contextlib.asynccontextmanager
    async def _turn(self, device: str, notify: Notify) -> AsyncGenerator[None]:
        """The requests of this launcher, in their order: one of them at the gate, and none while another measures."""
        turn = self._turns.setdefault(device, asyncio.Lock())
        if turn.locked():
            await notify(_waiting(device), None)
        async with turn:
            yield

    async def _enter(self, held: contextlib.ExitStack, device: str, how: int, notify: Notify) -> None:
        name = device.replace(":", "")
        with contextlib.ExitStack() as gate:
            await _take(self._open(gate, f"hiera-{name}.gate"), fcntl.LOCK_EX, device, notify)
            await _take(self._open(held, f"hiera-{name}.lock"), how, device, notify)

    def _note_stuck(self, device: str, pids: Iterable[int]) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                self._stuck.setdefault(device, []).append(os.pidfd_open(pid))

    def _refuse_beside_stuck(self, device: str) -> None:
        """A process that is stuck takes no time of the processor, but it may keep a GPU busy, and keeps its memory."""
        stuck = self._stuck.pop(device, [])
        living = [fd for fd in stuck if not select.select((fd,), (), (), 0)[0]]
        for fd in set(stuck) - set(living):
            os.close(fd)
        if living:
            self._stuck[device] = living
        if living and device != "cpu":
            raise LostError(
                f"A process of an earlier candidate is stuck on {device} and cannot be killed; nothing is measured there.",
                todo="Look at `dmesg`; reset the GPU or restart the host.",
            )

    def _open(self, stack: contextlib.ExitStack, name: str) -> int:
        fd = open_shared(self._folder / name)
        stack.callback(os.close, fd)
        return fd


def open_shared(path: Path) -> int:
    """Open a lock file that may belong to any user; a lock needs no right to write.

    In a sticky folder the kernel refuses O_CREAT on other users' files (fs.protected_regular), hence the two steps.

    Raises:
        SandboxError: the path cannot be used as a lock.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    for _ in range(3):
        with contextlib.suppress(FileNotFoundError):
            return _checked(path, flags)
        with contextlib.suppress(FileExistsError):
            fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
            os.fchmod(fd, 0o644)
            return fd
    raise SandboxError(f"The device lock {path} is created and removed by somebody else all the time.")


def _checked(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError as e:
        raise SandboxError(f"The device lock {path} cannot be opened: {e.strerror}.", todo="Remove that file.") from e


async def _take(fd: int, how: int, device: str, notify: Notify) -> None:
    waited = 0.0
    while not _try(fd, how):
        if waited % TELL_S < POLL_S:
            await notify(_waiting(device), None)
        await asyncio.sleep(POLL_S)
        waited += POLL_S


def _try(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _waiting(device: str) -> str:
    return f"waiting for the device {device}: other work is using it"
