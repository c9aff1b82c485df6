"""A process that is stuck in the kernel ignores even SIGKILL. A frozen one does so too (cgroup v1, freezer)."""

import asyncio
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiera_mcp.errors import LostError
from hiera_mcp.sandbox.child.tree import descendants
from hiera_mcp.sandbox.isolation import process
from hiera_mcp.sandbox.isolation.box import BoxLimits, BoxSpec
from hiera_mcp.sandbox.isolation.bubblewrap import Bubblewrap
from hiera_mcp.sandbox.launcher.locks import DeviceLocks

FREEZER = Path("/sys/fs/cgroup/freezer")
LIMITS = BoxLimits(memory_bytes=256 << 20)
pytestmark = pytest.mark.skipif(not os.access(FREEZER, os.W_OK), reason="needs the freezer of cgroup v1, and root")


@pytest.fixture
def freezer() -> Iterator[Path]:
    """A cgroup in which processes can be frozen; at the end all in it go on, and die of what was sent to them."""
    group = FREEZER / f"hiera-test-{uuid.uuid4().hex[:8]}"
    group.mkdir()
    yield group
    (group / "freezer.state").write_text("THAWED")
    end = time.monotonic() + 10
    while (group / "tasks").read_text() and time.monotonic() < end:
        time.sleep(0.01)
    group.rmdir()


async def sleeping(work: Path) -> process.BoxProcess:
    """A box whose program runs."""
    box = await process.start(Bubblewrap(), BoxSpec(("sleep", "60"), work, LIMITS))
    while not any(_program(pid) == "sleep" for pid in descendants(box.pid)):
        await asyncio.sleep(0.01)
    return box


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


async def freeze(group: Path, pids: list[int]) -> None:
    for pid in pids:
        (group / "cgroup.procs").write_text(str(pid))
    (group / "freezer.state").write_text("FROZEN")
    while (group / "freezer.state").read_text().strip() != "FROZEN":
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("whole", [True, False], ids=["all of it", "but for bwrap itself"])
async def test_a_box_that_does_not_die_is_given_up_in_time_and_the_next_box_works(
    whole: bool, freezer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_UNKILLABLE_S", 0.5)
    box = await sleeping(tmp_path)
    stuck = [*([box.pid] if whole else []), *descendants(box.pid)]
    await freeze(freezer, stuck)
    began = time.monotonic()
    with pytest.raises(LostError, match="does not react to SIGKILL"):
        await box.wait(0.1)
    assert time.monotonic() - began < 5
    outcome = await process.run(Bubblewrap(), BoxSpec(("echo", "works"), tmp_path, LIMITS), 20)
    assert outcome.output == "works\n"


async def test_a_gpu_on_which_a_process_is_stuck_is_not_measured_on_until_it_is_gone(
    freezer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_UNKILLABLE_S", 0.2)
    locks = DeviceLocks(tmp_path)
    box = await sleeping(tmp_path)
    await freeze(freezer, [box.pid, *descendants(box.pid)])
    with pytest.raises(process.StuckError):
        async with locks.measuring("cuda:0", silent):
            await box.kill()
    with pytest.raises(LostError, match="stuck on cuda:0"):
        async with locks.measuring("cuda:0", silent):
            pass
    for other in ("cuda:1", "cpu"):
        async with locks.measuring(other, silent):
            pass
    (freezer / "freezer.state").write_text("THAWED")
    end = time.monotonic() + 10
    while not await is_measured_on(locks, "cuda:0"):
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


async def is_measured_on(locks: DeviceLocks, device: str) -> bool:
    try:
        async with locks.measuring(device, silent):
            return True
    except LostError:
        return False


async def silent(message: str, fraction: float | None) -> None:
    pass
