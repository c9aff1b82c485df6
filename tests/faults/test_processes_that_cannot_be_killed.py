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
    box = await process.start(Bubblewrap(), BoxSpec(("sleep", "60"), tmp_path, LIMITS))
    while len(descendants(box.pid)) < 2:
        await asyncio.sleep(0.01)
    stuck = [*([box.pid] if whole else []), *descendants(box.pid)]
    await freeze(freezer, stuck)
    began = time.monotonic()
    with pytest.raises(LostError, match="does not react to SIGKILL"):
        await box.wait(0.1)
    assert time.monotonic() - began < 5
    outcome = await process.run(Bubblewrap(), BoxSpec(("echo", "works"), tmp_path, LIMITS), 20)
    assert outcome.output == "works\n"
