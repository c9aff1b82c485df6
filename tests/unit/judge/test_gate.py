"""The gate to a runner's box, on real processes."""

import asyncio
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from hiera_mcp.sandbox.child.gate import Gate
from hiera_mcp.sandbox.child.peer import Peer
from hiera_mcp.sandbox.child.tree import descendants, signal_process
from hiera_mcp.sandbox.launcher.gate import gate, hold, processor_ns

SPINS = "import threading\nfor _ in range(2): threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()"
RESTS = "import time; time.sleep(60)"
FORKS = "import os\nwhile True:\n    if os.fork(): os._exit(0)"
"""Each generation ends when it has started the next one: whose time nobody but who adopts them can tell."""
LOOKS_AT_ONCE = """
import select, signal, socket, struct, json
sock, seen = socket.socket(fileno={fd}), []
def look(*_):
    seen.append(bool(select.select([sock], [], [], 0)[0]))
signal.signal(signal.SIGCONT, look)
while head := sock.recv(4):
    sock.recv(struct.unpack("!I", head)[0])
    body = json.dumps({{"ok": True, "lay_there": seen}}).encode()
    sock.sendall(struct.pack("!I", len(body)) + body)
"""


def box(program: str, *fds: int) -> subprocess.Popen[bytes]:
    """A process whose child runs the program: a box's first process does no work itself, and adopts who is left alone."""
    child = f"""
import ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
subprocess.Popen([sys.executable, '-c', {program!r}], pass_fds={fds!r})
try:
    while os.wait():
        pass
except ChildProcessError:
    pass
"""
    started = subprocess.Popen([sys.executable, "-c", child], pass_fds=fds)
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


@pytest.fixture
def forking() -> Iterator[subprocess.Popen[bytes]]:
    process = box(FORKS)
    yield process
    hold(process.pid)
    for pid in (*descendants(process.pid), process.pid):
        signal_process(pid, signal.SIGKILL)
    process.wait()


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
        assert processor_ns(below) == first and used > 0
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


async def test_generations_that_end_at_once_are_held_and_seen(forking: subprocess.Popen[bytes]) -> None:
    with gate(forking.pid) as end:
        asked = Gate(end)
        assert (await asyncio.to_thread(asked.left_running)).startswith("work was left running")
        below = set(descendants(forking.pid))
        await asyncio.sleep(0.1)
        assert below and set(descendants(forking.pid)) == below


async def test_whoever_is_let_go_finds_the_question_there_so_that_no_moment_before_it_is_free() -> None:
    ours, theirs = socket.socketpair()
    runner = box(LOOKS_AT_ONCE.format(fd=theirs.fileno()), theirs.fileno())
    theirs.close()
    for process in ended(runner):
        with ours, gate(process.pid) as end:
            asked = Gate(end)
            await asyncio.to_thread(asked.hold)
            peer = Peer(ours, asked)
            replies = [await asyncio.to_thread(peer.ask, {"op": "run"}, 20.0) for _ in range(3)]
            assert replies[-1]["lay_there"] == [True] * 3
            assert peer.seconds > 0
