"""What a process shares with those it forks for untrusted code: files, and properties of its own that any process of the
same user may set (prlimit(2), sched_setaffinity(2), setpriority(2), and fcntl(2) on descriptors that both inherit).

Whatever of it is not as it was could decide how the next one fares.
"""

import fcntl
import os
import resource
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_STANDARD = (0, 1, 2)
_GET_SIGNAL, _GET_PIPE_SIZE = 11, 1032
"""F_GETSIG and F_GETPIPE_SZ; Python names the second one only, and not in all versions."""
_LIMITS = tuple(getattr(resource, name) for name in sorted(dir(resource)) if name.startswith("RLIMIT_"))

Mark = tuple[int, int]
"""Inode and time of the last change, which no program can set."""


@dataclass(frozen=True)
class SharedState:
    """How things were at one moment."""

    folders: tuple[str, ...]
    files: dict[str, Mark]
    properties: tuple[object, ...]

    @classmethod
    def now(cls, folders: Iterable[str]) -> "SharedState":
        """Of this process, and of all below `folders`; folders that may not be listed hold nothing."""
        chosen = tuple(sorted(folder for folder in set(folders) if os.path.isdir(folder)))
        return cls(chosen, dict(_files(chosen)), _properties(chosen))

    def holds(self) -> bool:
        """Whether all of it is still so. Stops at the first difference, however much somebody left."""
        if _properties(self.folders) != self.properties:
            return False
        seen = 0
        for path, mark in _files(self.folders):
            if self.files.get(path) != mark:
                return False
            seen += 1
        return seen == len(self.files)


def _files(folders: tuple[str, ...]) -> Iterator[tuple[str, Mark]]:
    """All below the folders, from the top down. The folders themselves change with each job."""
    for top in folders:
        for above, below, names in os.walk(top):
            for name in (*below, *names):
                path = os.path.join(above, name)
                yield path, _mark(path, path in folders)


def _mark(path: str, changes: bool) -> Mark:
    try:
        entry = os.lstat(path)
    except OSError:
        return 0, 0
    return entry.st_ino, 0 if changes else entry.st_ctime_ns


def _properties(folders: tuple[str, ...]) -> tuple[object, ...]:
    return (
        tuple(resource.getrlimit(limit) for limit in _LIMITS),
        os.sched_getaffinity(0),
        os.sched_getscheduler(0),
        os.getpriority(os.PRIO_PROCESS, 0),
        tuple(_descriptor(fd) for fd in _STANDARD),
        tuple((entry.st_mode, entry.st_uid) for entry in map(os.stat, folders)),
    )


def _descriptor(fd: int) -> tuple[int, ...]:
    """The properties of an open file that all who inherit it share."""
    asked = (fcntl.F_GETFL, fcntl.F_GETOWN, _GET_SIGNAL)
    try:
        pipe = (_GET_PIPE_SIZE,) if stat.S_ISFIFO(os.fstat(fd).st_mode) else ()
        return tuple(fcntl.fcntl(fd, command) for command in (*asked, *pipe))
    except OSError:
        return ()
