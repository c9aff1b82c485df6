"""SIGKILL leaves a launcher no time for anything, and still nothing of it is left within two seconds."""

import asyncio
import os
import shutil
import signal
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.errors import LostError
from hiera_mcp.model.work import TraceRequest
from hiera_mcp.sandbox.child.tree import children
from hiera_mcp.sandbox.local import LocalExecutor

MOST_S = 2.0
BOMB = """
import ctypes, os, time
ctypes.CDLL(None).prctl(15, b"{name}", 0, 0, 0)
for _ in range(16):  # so many lines of descent, in each of which every process leaves a child in a new session and ends
    if os.fork() == 0:
        while True:
            if os.fork():
                os._exit(0)
            os.setsid()
time.sleep(100)
"""


class Bomb:
    """A reference that forks wildly, in the box of an executor of its own."""

    def __init__(self, cache: Path, unsafe: bool) -> None:
        self.name = uuid.uuid4().hex[:12]
        self._executor = LocalExecutor(cache_dir=cache, unsafe=unsafe)
        self._tracing = asyncio.Event()

    async def __call__(self, message: str, fraction: float | None) -> None:
        if message.startswith("tracing"):
            self._tracing.set()

    async def start(self) -> None:
        """Return when its box is about to be made."""
        request = TraceRequest(source=BOMB.format(name=self.name), name="bomb")
        self.trace = asyncio.create_task(self._executor.trace(request, self))
        await self._tracing.wait()

    async def kill_launcher(self) -> tuple[Path, float]:
        """The launcher's work root, and when it was killed."""
        launcher = children(self._launcher()._process.pid)[0]
        links = (os.readlink(path) for path in Path(f"/proc/{launcher}/fd").iterdir())
        root = next(Path(link) for link in links if "hiera-work-" in link)
        os.kill(launcher, signal.SIGKILL)
        return root, time.monotonic()

    async def close(self) -> None:
        await self._executor.close()

    def _launcher(self) -> Any:
        return self._executor._launcher  # pyright: ignore[reportPrivateUsage]


def running(name: str, root: Path) -> list[int]:
    """Boxed processes by the name that they gave themselves, and what makes a box by the folder that it binds."""
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_ours(pid, name, root)]


def _is_ours(pid: int, name: str, root: Path) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        called, line = Path(f"/proc/{pid}/comm").read_text().strip(), Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return state != "Z" and (called == name or str(root).encode() in line)


@pytest.fixture(params=["bubblewrap", "unsafe"])
def unsafe(request: pytest.FixtureRequest) -> bool:
    if request.param == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    return request.param == "unsafe"


async def nothing_is_left(bomb: Bomb, root: Path, killed: float) -> None:
    with pytest.raises(LostError):
        await bomb.trace
    while running(bomb.name, root) and time.monotonic() - killed < MOST_S:
        await asyncio.sleep(0.01)
    assert running(bomb.name, root) == []
    assert not root.exists()


async def test_while_the_box_forks_wildly(unsafe: bool, tmp_path: Path):
    bomb = Bomb(tmp_path, unsafe)
    await bomb.start()
    while len(running(bomb.name, tmp_path)) < 10:
        assert not bomb.trace.done()
        await asyncio.sleep(0.01)
    root, killed = await bomb.kill_launcher()
    await nothing_is_left(bomb, root, killed)
    await bomb.close()


@pytest.mark.parametrize("delay_ms", [0, 2, 4, 6, 8, 12])
async def test_while_the_box_is_being_made(delay_ms: int, unsafe: bool, tmp_path: Path):
    bomb = Bomb(tmp_path, unsafe)
    await bomb.start()
    await asyncio.sleep(delay_ms / 1000)
    root, killed = await bomb.kill_launcher()
    await nothing_is_left(bomb, root, killed)
    await bomb.close()
