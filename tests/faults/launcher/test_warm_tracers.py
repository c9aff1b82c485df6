"""One box traces many references, each in a process of its own: none of them decides how the next one fares."""

import ast
import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hiera_mcp.errors import SandboxError, TaskError
from hiera_mcp.model.work import Trace, TraceRequest
from hiera_mcp.sandbox.child.tree import children, descendants
from hiera_mcp.sandbox.local import LocalExecutor

pytestmark = pytest.mark.asyncio(loop_scope="module")

REFERENCE = """
import torch
{act}
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.randn(4, 4)]
def get_init_inputs():
    return []
"""
OBSERVE = """
import fcntl, os, resource, zlib
box = os.environ["HIERA_BOX"]
limits = [resource.getrlimit(getattr(resource, n)) for n in sorted(dir(resource)) if n.startswith("RLIMIT_")]
def refused(path):
    try: os.listdir(path)
    except OSError: return True
raise RuntimeError("SEEN" + repr({
    "processes": sum(map(str.isdigit, os.listdir("/proc"))),
    "folders": [len(os.listdir(f)) for f in ("/tmp", "/dev/shm", box)],
    "limits": zlib.crc32(repr(limits).encode()),
    "processors": sorted(os.sched_getaffinity(0)), "scheduler": os.sched_getscheduler(0), "nice": os.nice(0),
    "output": [fcntl.fcntl(1, n) for n in (fcntl.F_GETFL, fcntl.F_GETOWN, 11)],
    "sockets": [n for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}") and
                os.readlink(f"/proc/self/fd/{n}").startswith("socket")],
    "parent": [refused(f"/proc/{os.getppid()}/{n}") for n in ("fd", "map_files")],
}) + "NEES")
"""
INFLUENCE = {
    "sets limits, priority and processors of its parent": """
import os, resource
parent = os.getppid()
resource.prlimit(parent, resource.RLIMIT_NOFILE, (8, 8))
os.setpriority(os.PRIO_PROCESS, parent, 19)
os.sched_setscheduler(parent, os.SCHED_IDLE, os.sched_param(0))
""",
    "has a signal sent to its parent later": """
import fcntl, os, signal
try:
    fcntl.fcntl(1, fcntl.F_SETOWN, os.getppid())
    fcntl.fcntl(1, 10, signal.SIGSTOP)
except PermissionError:
    pass
fcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL) | os.O_NONBLOCK | 0o20000)
""",
    "leaves files, and daemons that would write a result for others": """
import os, signal, sys, time
for folder in ("/tmp", "/dev/shm", os.environ["HIERA_BOX"]):
    open(folder + "/left", "w").write("here I was")
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        for n in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}: signal.signal(n, signal.SIG_IGN)
        if os.fork(): os._exit(0)
        while True:
            for name in os.listdir(os.environ["HIERA_BOX"]):
                try: open(f"{os.environ['HIERA_BOX']}/{name}/result.json", "w").write('{"trace": 1}')
                except OSError: pass
""",
}
BLAMED = {
    "stops its parent": ("import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)", "did not end within"),
    "kills its parent": ("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)", "SIGKILL"),
    "fills the disk": (
        "import os, time\nfor n in range(4): os.posix_fallocate(os.open(f'{os.environ[\"HIERA_BOX\"]}/{n}', 66), 0, 200 << 20)\ntime.sleep(60)",
        "disk space",
    ),
}


async def quiet(message: str, fraction: float | None) -> None:
    pass


class Tracing:
    """An executor, and the box in which its references are traced."""

    def __init__(self, executor: LocalExecutor) -> None:
        self._executor = executor
        self.untouched: dict[str, Any] = {}
        """What a reference sees that came after harmless ones."""

    async def trace(self, act: str = "", timeout_s: float = 60.0) -> Trace:
        request = TraceRequest(source=REFERENCE.format(act=act), name="any", timeout_s=timeout_s, probe_s=0.1)
        return await self._executor.trace(request, quiet)

    async def observed(self) -> dict[str, Any]:
        """What a reference sees of what it has in common with others."""
        with pytest.raises(TaskError) as caught:
            await self.trace(OBSERVE)
        return ast.literal_eval(str(caught.value).partition("SEEN")[2].partition("NEES")[0])

    def boxes(self) -> set[int]:
        """Processes of tracers."""
        guardian = self._executor._launcher._process.pid  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]
        return {pid for pid in descendants(guardian) if b"child.tracer" in _command_line(pid)}

    def launcher(self) -> int:
        return children(self._executor._launcher._process.pid)[0]  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def tracing(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Tracing]:
    executor = LocalExecutor(cache_dir=tmp_path_factory.mktemp("cache"))
    yield Tracing(executor)
    await executor.close()


async def test_references_share_a_box_and_see_the_same(tracing: Tracing) -> None:
    await tracing.trace()
    box = tracing.boxes()
    seen = tracing.untouched = await tracing.observed()
    assert await tracing.observed() == seen
    assert tracing.boxes() == box != set()
    assert seen["sockets"] == [] and seen["folders"][1:] == [0, 1] and all(seen["parent"])


@pytest.mark.parametrize("how", INFLUENCE)
async def test_a_reference_decides_nothing_for_the_next_one(tracing: Tracing, how: str) -> None:
    tracing.untouched = tracing.untouched or await tracing.observed()
    box = tracing.boxes()
    with contextlib.suppress(SandboxError):  # its own result it may spoil
        await tracing.trace(INFLUENCE[how])
    assert await tracing.observed() == tracing.untouched
    assert not tracing.boxes() & box


@pytest.mark.parametrize("how", BLAMED)
async def test_a_reference_that_disturbs_its_box_is_blamed_itself_and_the_next_one_is_traced(
    tracing: Tracing, how: str
) -> None:
    act, seen = BLAMED[how]
    with pytest.raises(TaskError, match=seen):
        await tracing.trace(act, timeout_s=4.0)
    assert (await tracing.trace()).outputs[0].shape == (4, 4)


async def test_boxes_are_started_by_the_launchers_main_thread(tracing: Tracing) -> None:
    """A box dies with the thread that started it (prctl(2), PR_SET_PDEATHSIG), so no passing thread may do that."""
    await asyncio.gather(*(tracing.trace() for _ in range(2)))
    launcher = tracing.launcher()
    of_main_thread = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    assert sorted(map(int, of_main_thread)) == sorted(children(launcher)) != []
    assert len(os.listdir(f"/proc/{launcher}/task")) > 1
