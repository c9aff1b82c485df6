"""The processes below a process, and killing them all."""

from __future__ import annotations

import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_PAUSE_S = 0.001


def descendants(pid: int) -> list[int]:
    """All processes below `pid`, without itself. A moving picture: processes may start and end meanwhile."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children(waiting.pop())
        found += below
        waiting += below
    return found


def kill_descendants(pid: int) -> int:
    """Kill everything below `pid`; returns how many processes were found. Call it again until it returns 0.

    Whole process groups go first, because the kernel signals a group at once and no fork escapes; what made groups of its
    own is stopped before it is killed, so that it cannot fork meanwhile.
    """
    below = descendants(pid)
    for group in _groups(below) - _groups([pid, os.getpid()]):
        _signal(os.killpg, group, signal.SIGKILL)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for one in below:
            signal_process(one, number)
    return len(below)


def wait_for(pid: int) -> int:
    """Wait for a child; its exit status, or minus the signal that ended it. Orphans that a subreaper has adopted are reaped
    meanwhile: dead ones would count against a limit on processes."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            return os.waitstatus_to_exitcode(status)


def end_descendants(longest_s: float = float("inf")) -> None:
    """Kill and reap everything below this process, a subreaper, until there is no child left."""
    until = time.monotonic() + longest_s
    while time.monotonic() < until:
        kill_descendants(os.getpid())
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(_PAUSE_S)


def signal_process(pid: int, number: int) -> None:
    """Send a signal to a process that may have ended already."""
    _signal(os.kill, pid, number)


def _signal(send: Callable[[int, int], None], target: int, number: int) -> None:
    try:
        send(target, number)
    except (ProcessLookupError, PermissionError):
        return  # gone, or its number belongs to somebody else by now


def _groups(pids: Iterable[int]) -> set[int]:
    found: set[int] = set()
    for pid in pids:
        try:
            found.add(os.getpgid(pid))
        except ProcessLookupError:
            continue
    return found


def children(pid: int) -> list[int]:
    """Children of all threads of `pid`, zombies among them (proc(5), task/TID/children)."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    found: list[int] = []
    for task in tasks:
        try:
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                found += map(int, file.read().split())
        except OSError:
            continue
    return found
