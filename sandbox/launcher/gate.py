"""Stops and continues all processes of a runner's box when the judge asks for it; see sandbox/child/gate.py."""

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Generator, Iterable

from hiera_mcp.sandbox.child.gate import HOLD, RELEASE, REPLY
from hiera_mcp.sandbox.child.tree import descendants, signal_process

_HOLD_S, _PAUSE_S = 2.0, 0.0005
"""So long may it take until all processes stand still. They do within a millisecond, unless they wake each other, or have to
wait on a busy host: a thread must run once more to be stopped."""
_STILL = frozenset("TtZX")
_TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def gate(pid: int) -> Generator[socket.socket]:
    """The judge's end of a gate to the box whose first process is `pid`."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    loop = asyncio.get_running_loop()
    loop.add_reader(ours, _answer, loop, ours, pid)
    try:
        with theirs:
            yield theirs
    finally:
        loop.remove_reader(ours)
        ours.close()


def _answer(loop: asyncio.AbstractEventLoop, sock: socket.socket, pid: int) -> None:
    try:
        what = sock.recv(1)
        if what:
            sock.send(REPLY.pack(*_done(what, pid)))
            return
    except OSError:
        pass  # the judge is gone: there is nobody to answer
    loop.remove_reader(sock)


def _done(what: bytes, pid: int) -> tuple[bool, int, int]:
    """Do what is asked; what the answer says. What lets the box go says no more than when, and at once: it is being timed."""
    if what == RELEASE:
        return True, _continue(pid), 0
    still, below = what != HOLD or hold(pid), descendants(pid)
    return still, processor_ns([pid, *below]), max(below, default=0)


def hold(pid: int) -> bool:
    """Stop everything below `pid`; whether all of it stands still.

    Two looks must find the same: one that ends while it is looked for, may have started another that is not in the list.
    """
    until = time.monotonic() + _HOLD_S
    before: set[int] | None = None
    while time.monotonic() < until:
        found = set(descendants(pid))
        running = [below for below in found if not _stands_still(below)]
        if not running and found == before:
            return True
        before = found
        for below in running:
            signal_process(below, signal.SIGSTOP)
        if any(not _stands_still(below) for below in running):
            time.sleep(_PAUSE_S)
    return False


def _continue(pid: int) -> int:
    """Let everything below `pid` go; the moment before the first of it ran, in nanoseconds of the monotonic clock."""
    found = descendants(pid)
    moment = time.monotonic_ns()
    for below in found:
        signal_process(below, signal.SIGCONT)
    return moment


def processor_ns(pids: Iterable[int]) -> int:
    """Nanoseconds of processor time of these processes, had or waited for: exact for threads that live; in ticks, without the
    waiting, for those that ended, and for processes that they have seen the end of."""
    return sum(_processor_ns(pid) for pid in pids)


def _processor_ns(pid: int) -> int:
    living = sum(_ran_and_waited(f"/proc/{pid}/task/{tid}/schedstat") for tid in _threads(pid))
    own, children = _ticks(pid)
    return max(living, _TICK_NS * own) + _TICK_NS * children


def _stands_still(pid: int) -> bool:
    return all(_state(f"/proc/{pid}/task/{tid}/stat") in _STILL for tid in _threads(pid))


def _state(path: str) -> str:
    """One letter (proc(5), stat); X where the thread is gone."""
    fields = _fields_after_name(path)
    return fields[0] if fields else "X"


def _ticks(pid: int) -> tuple[int, int]:
    """Of the process with its ended threads, and of the children that it has waited for (proc(5), stat, fields 14 to 17)."""
    fields = _fields_after_name(f"/proc/{pid}/stat")
    return (sum(map(int, fields[11:13])), sum(map(int, fields[13:15]))) if fields else (0, 0)


def _fields_after_name(path: str) -> list[str]:
    """The name of a program may hold blanks and brackets: what follows its last bracket is well-formed."""
    return _read(path).rpartition(")")[2].split()


def _ran_and_waited(path: str) -> int:
    """Nanoseconds on a processor, and in a queue for one: on a busy host a thread that never rests mostly waits (schedstat)."""
    return sum(int(field) for field in _read(path).split()[:2])


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
