"""The gate to a runner's box, on real processes."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from hiera_mcp.sandbox.child.gate import Gate
from hiera_mcp.sandbox.child.tree import descendants
from hiera_mcp.sandbox.launcher.gate import gate, processor_ns

SPINS = "import threading\nfor _ in range(2): threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()"
RESTS = "import time; time.sleep(60)"


def box(program: str) -> subprocess.Popen[bytes]:
    """A process whose child runs the program: a box's first process does no work itself."""
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {program!r}])"
    started = subprocess.Popen([sys.executable, "-c", child])
    until = time.monotonic() + 20
    while not descendants(started.pid) and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.2)
    return started


@pytest.fixture
def spinning() -> Iterator[subprocess.Popen[bytes]]:
    yield from ended(box(SPINS))


@pytest.fixture
def resting() -> Iterator[subprocess.Popen[bytes]]:
    yield from ended(box(RESTS))


def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    below = descendants(process.pid)
    yield process
    for pid in below:
        subprocess.run(["kill", "-9", str(pid)], check=False)
    process.kill()
    process.wait()


async def test_a_box_that_is_held_uses_no_processor_time_and_goes_on_when_it_is_released(
    spinning: subprocess.Popen[bytes],
) -> None:
    with gate(spinning.pid) as end:
        asked = Gate(end)
        used = await asyncio.to_thread(asked.hold)
        below = descendants(spinning.pid)
        first = processor_ns(below)
        await asyncio.sleep(0.1)
        assert processor_ns(below) == first and used * 1e9 <= first
        await asyncio.to_thread(asked.release)
        await asyncio.sleep(0.2)
        assert processor_ns(below) > first


async def test_what_spins_while_nothing_is_asked_is_seen_and_what_rests_is_not(
    spinning: subprocess.Popen[bytes], resting: subprocess.Popen[bytes]
) -> None:
    for process, words in ((spinning, "work was left running"), (resting, "")):
        with gate(process.pid) as end:
            found = await asyncio.to_thread(Gate(end).left_running)
            assert found.startswith(words) and bool(found) == bool(words)


def test_without_a_gate_nothing_is_held() -> None:
    asked = Gate()
    assert asked.hold() == 0 and asked.left_running() == ""
