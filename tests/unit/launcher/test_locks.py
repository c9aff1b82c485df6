"""Device locks: exclusive for measuring, shared for loading, fair between servers."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.errors import SandboxError
from hiera_mcp.sandbox.launcher.locks import DeviceLocks, open_shared

HOLD = """
import fcntl, sys
lock = open(sys.argv[1]); fcntl.flock(lock, fcntl.LOCK_EX); print("held", flush=True); sys.stdin.read()
"""


async def test_two_servers_never_measure_on_one_device_at_once(tmp_path: Path, heard: Any):
    inside = 0
    most = 0

    async def measure(locks: DeviceLocks) -> None:
        nonlocal inside, most
        async with locks.measuring("cpu", heard):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.01)
            inside -= 1

    first, second = DeviceLocks(tmp_path), DeviceLocks(tmp_path)
    await asyncio.gather(*(measure(locks) for _ in range(4) for locks in (first, second)))
    assert most == 1
    assert any("waiting for the device cpu" in m for m in heard.messages)


async def test_a_server_with_a_long_queue_does_not_starve_another(tmp_path: Path, heard: Any):
    order: list[str] = []

    async def measure(locks: DeviceLocks, name: str) -> None:
        async with locks.measuring("cpu", heard):
            order.append(name)
            await asyncio.sleep(0.05)

    busy, other = DeviceLocks(tmp_path), DeviceLocks(tmp_path)
    queue = [asyncio.create_task(measure(busy, "busy")) for _ in range(6)]
    await asyncio.sleep(0.02)
    await asyncio.gather(*queue, measure(other, "other"))
    assert order.index("other") < 5


async def test_loads_share_the_processors_and_a_measurement_waits_for_all_of_them(tmp_path: Path, heard: Any):
    locks = DeviceLocks(tmp_path)
    async with locks.loading(heard), locks.loading(heard):
        measuring = asyncio.create_task(_hold_once(locks, "cpu", heard))
        await asyncio.sleep(0.1)
        assert not measuring.done()
    await measuring


async def test_different_devices_do_not_wait_for_each_other(tmp_path: Path, heard: Any):
    locks = DeviceLocks(tmp_path)
    async with locks.measuring("cuda:0", heard), locks.measuring("cuda:1", heard), locks.measuring("cpu", heard):
        assert heard.messages == []


async def test_a_cancelled_waiter_leaves_the_lock_to_the_others(tmp_path: Path, heard: Any):
    locks = DeviceLocks(tmp_path)
    async with locks.measuring("cpu", heard):
        waiter = asyncio.create_task(_hold_once(locks, "cpu", heard))
        await asyncio.sleep(0.05)
        waiter.cancel()
        await asyncio.wait({waiter})
    await _hold_once(DeviceLocks(tmp_path), "cpu", heard)


async def test_the_lock_of_a_killed_holder_is_free(tmp_path: Path, heard: Any):
    await _hold_once(DeviceLocks(tmp_path), "cpu", heard)
    holder = _holder(tmp_path / "hiera-cpu.lock")
    waiter = asyncio.create_task(_hold_once(DeviceLocks(tmp_path), "cpu", heard))
    await asyncio.sleep(0.1)
    assert not waiter.done()
    holder.kill()
    await waiter
    holder.communicate()


def test_a_link_in_place_of_a_lock_is_refused(tmp_path: Path):
    (tmp_path / "lock").symlink_to(tmp_path / "victim")
    with pytest.raises(SandboxError, match="cannot be opened"):
        open_shared(tmp_path / "lock")
    assert not (tmp_path / "victim").exists()


async def _hold_once(locks: DeviceLocks, device: str, heard: Any) -> None:
    async with locks.measuring(device, heard):
        pass


def _holder(lock: Path) -> "subprocess.Popen[bytes]":
    """Another process that holds the lock until it is killed."""
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    return holder
