"""Whoever dies or gives up: nothing is left running, locks are free, and the next request works."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.errors import LostError, TaskError
from hiera_mcp.model.evaluation import Evaluation, Status
from hiera_mcp.model.work import TraceRequest
from hiera_mcp.sandbox.child.tree import children
from hiera_mcp.sandbox.launcher.locks import DeviceLocks
from hiera_mcp.sandbox.local import LocalExecutor

ENDLESS = "while True:\n    pass\n"
SERVER = """
import asyncio, sys
from pathlib import Path
from hiera_mcp.model.work import TraceRequest
from hiera_mcp.sandbox.child.tree import children
from hiera_mcp.sandbox.local import LocalExecutor

async def main():
    executor = LocalExecutor(cache_dir=Path(sys.argv[1]))
    async def notify(message, fraction):
        if message.startswith("tracing"):
            print(*children(executor._launcher._process.pid), flush=True)
    await executor.trace(TraceRequest(source="while True: pass", name="endless"), notify)

asyncio.run(main())
"""
LOSING = """
import asyncio, os, signal, sys, time
from pathlib import Path
from hiera_mcp.sandbox.local import LocalExecutor

async def main():
    executor = LocalExecutor(cache_dir=Path(sys.argv[1]))
    for _ in range(8):
        launcher = await executor._running()
        os.kill(launcher._process.pid, signal.SIGKILL)
        until = time.monotonic() + 0.1
        while time.monotonic() < until:
            launcher._end()  # what happens when the loss is noticed, at every moment at which that may be
        await launcher._reading
    await executor.close()

asyncio.run(main())
"""
NO_TORCH = """
import asyncio, sys
from pathlib import Path
from hiera_mcp.sandbox.local import LocalExecutor

async def main():
    executor = LocalExecutor(cache_dir=Path(sys.argv[1]))
    await executor.doctor()
    await executor.close()

asyncio.run(main())
sys.exit(1 if {"torch", "cupy", "numpy"} & {name.partition(".")[0] for name in sys.modules} else 0)
"""


class Progress:
    """A Notify on which one can wait for a message."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self._changed = asyncio.Event()

    async def __call__(self, message: str, fraction: float | None) -> None:
        self.messages.append(message)
        self._changed.set()

    async def heard(self, part: str) -> None:
        while not any(part in m for m in self.messages):
            self._changed.clear()
            await self._changed.wait()


@pytest.fixture
async def executor(tmp_path: Path) -> AsyncGenerator[LocalExecutor]:
    made = LocalExecutor(cache_dir=tmp_path / "cache")
    yield made
    await made.close()


def endless(timeout_s: float = 100) -> TraceRequest:
    return TraceRequest(source=ENDLESS, name="endless", timeout_s=timeout_s)


def guardian_pid(executor: Any) -> int:
    return executor._launcher._process.pid


def launcher_pid(executor: Any) -> int:
    return children(guardian_pid(executor))[0]


async def gone(alive: Any, some: Any) -> None:
    """Wait until none of the processes runs; the test's own timeout bounds it."""
    while alive(some):
        await asyncio.sleep(0.01)


async def lock_is_free() -> None:
    progress = Progress()
    async with DeviceLocks().measuring("cpu", progress):
        pass


async def test_a_cancelled_request_leaves_no_process_and_frees_the_lock(executor: LocalExecutor, tree: Any, alive: Any):
    progress = Progress()
    tracing = asyncio.create_task(executor.trace(endless(), progress))
    await progress.heard("tracing")
    await asyncio.sleep(0.3)
    below = tree(launcher_pid(executor)) - {
        next(iter(t for t in tree(launcher_pid(executor)) if t[0] == launcher_pid(executor)))
    }
    assert below
    tracing.cancel()
    await asyncio.wait({tracing})
    assert tracing.cancelled()
    assert not alive(below)
    await lock_is_free()


async def test_a_request_that_is_cancelled_at_once_is_no_trouble(executor: LocalExecutor):
    for _ in range(5):
        tracing = asyncio.create_task(executor.trace(endless(), Progress()))
        await asyncio.sleep(0)
        tracing.cancel()
        await asyncio.wait({tracing})
    assert (await executor.doctor()).chosen


async def test_a_notify_that_fails_cancels_the_work(executor: LocalExecutor, tree: Any, alive: Any):
    class Gone(Exception):
        pass

    async def client_left(message: str, fraction: float | None) -> None:
        raise Gone

    with pytest.raises(Gone):
        await executor.trace(endless(), client_left)
    assert len(alive(tree(launcher_pid(executor)))) == 1


@pytest.mark.parametrize("victim", [launcher_pid, guardian_pid])
async def test_a_killed_launcher_means_lost_for_all_who_wait_and_the_next_request_works(
    victim: Any, executor: LocalExecutor, tree: Any, alive: Any
):
    progress = Progress()
    waiting = [asyncio.create_task(executor.trace(endless(), progress)) for _ in range(3)]
    await progress.heard("tracing")
    await asyncio.sleep(0.3)
    all_of_it = tree(guardian_pid(executor))
    os.kill(victim(executor), signal.SIGKILL)
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(r) for r in results] == [LostError] * 3
    await gone(alive, all_of_it)
    assert (await executor.doctor()).chosen
    await lock_is_free()


async def test_a_server_that_loses_its_launcher_again_and_again_has_nothing_to_complain_of(tmp_path: Path):
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", LOSING, str(tmp_path), stderr=subprocess.PIPE, cwd=Path.cwd()
    )
    _, complaints = await server.communicate()
    assert (server.returncode, complaints) == (0, b"")


async def test_a_killed_server_leaves_no_process(tmp_path: Path, tree: Any, alive: Any):
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, str(tmp_path), stdout=subprocess.PIPE, cwd=Path.cwd()
    )
    assert server.stdout is not None
    launcher = int(await server.stdout.readline())
    await asyncio.sleep(0.3)
    all_of_it = tree(launcher)
    assert len(all_of_it) > 1
    root = next(str(p.readlink()) for p in Path(f"/proc/{launcher}/fd").iterdir() if "hiera-work-" in str(p.readlink()))
    server.kill()
    await server.wait()
    await gone(alive, all_of_it)
    assert not Path(root).exists()
    await lock_is_free()


async def test_ctrl_c_in_the_servers_terminal_does_not_reach_the_launcher(executor: LocalExecutor):
    await executor.doctor()
    assert os.getsid(guardian_pid(executor)) == guardian_pid(executor)
    assert os.getsid(launcher_pid(executor)) == launcher_pid(executor)


async def test_closing_ends_everything_and_those_who_wait_are_told(executor: LocalExecutor, tree: Any, alive: Any):
    progress = Progress()
    waiting = asyncio.create_task(executor.trace(endless(), progress))
    await progress.heard("tracing")
    all_of_it = tree(launcher_pid(executor))
    await executor.close()
    with pytest.raises(LostError):
        await waiting
    await gone(alive, all_of_it)
    with pytest.raises(LostError, match="closed"):
        await executor.trace(endless(), progress)


async def test_the_work_root_is_removed_at_the_end_or_by_the_next_launcher(executor: LocalExecutor, tmp_path: Path):
    await executor.doctor()
    fds = Path(f"/proc/{launcher_pid(executor)}/fd")
    root = next(p.readlink() for p in fds.iterdir() if "hiera-work-" in str(p.readlink()))
    assert root.exists() and root.parent == Path(tempfile.gettempdir())
    await executor.close()
    following = LocalExecutor(cache_dir=tmp_path)
    await following.doctor()
    await following.close()
    assert not root.exists()


async def test_the_server_never_imports_torch(tmp_path: Path):
    server = await asyncio.create_subprocess_exec(sys.executable, "-c", NO_TORCH, str(tmp_path), cwd=Path.cwd())
    assert await server.wait() == 0


async def test_a_reference_that_does_not_end_is_the_tasks_fault(executor: LocalExecutor):
    with pytest.raises(TaskError, match=r"did not end within 4 s\. Remove endless loops"):  # it said nothing, nor do we
        await executor.trace(endless(4), Progress())


async def test_a_reference_that_kills_its_process_is_the_tasks_fault(executor: LocalExecutor):
    source = "import os, signal\nprint('last words', flush=True)\nos.kill(os.getpid(), signal.SIGABRT)\n"
    with pytest.raises(TaskError, match=r"(?s)SIGABRT.*last words"):
        await executor.trace(TraceRequest(source=source, name="suicide"), Progress())


async def test_a_killed_judge_is_replaced_and_costs_the_candidate_nothing(
    executor: LocalExecutor, request_for: Any, tree: Any
):
    progress = Progress()
    evaluating = asyncio.create_task(executor.evaluate(request_for(), progress))
    await progress.heard("load the candidate")
    for pid, _ in tree(launcher_pid(executor)):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # another one of the tree may end meanwhile
            if b"hiera_mcp.sandbox.child.judge" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
    result = await evaluating
    assert isinstance(result, Evaluation) and result.status is Status.PASSED, result
    assert any("fresh one" in m for m in progress.messages)
