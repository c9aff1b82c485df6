"""The processes below a process, and killing them all."""

import os
import signal


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
    """Stop, then kill everything below `pid`; returns how many there were. Call it again until it returns 0: a process
    that forks faster than it is found escapes one round, but not the stopped parent's next."""
    below = descendants(pid)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for one in below:
            signal_process(one, number)
    return len(below)


def signal_process(pid: int, number: int) -> None:
    """Send a signal to a process that may have ended already."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return  # gone, or its number belongs to somebody else by now


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
