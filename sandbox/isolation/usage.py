"""What a box uses, seen from outside, and which of its limits that breaks."""

import os
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from hiera_mcp.sandbox.child.tree import descendants
from hiera_mcp.sandbox.isolation.box import BoxLimits

Breach = Literal["memory_limit", "disk_limit", "process_limit"]

_ENTRY_BYTES = 4096
"""What the least file, folder or link costs: many empty files fill a disk too."""
_BLOCK = 512
_PIPE_BYTES = 64 << 10
_POLL_S = 0.1
_CROWDED_S = 0.01
"""A box of many processes may be about to become a box of very many."""


@dataclass(frozen=True)
class Usage:
    """Of all processes of a box together."""

    processes: int
    memory_bytes: int
    held_disk_bytes: int
    """Files of the work folder's disk that are deleted, but still open."""


def breach(usage: Usage, disk_bytes: int, limits: BoxLimits) -> Breach | None:
    """The limit that is broken, if one is."""
    if usage.processes > limits.processes:
        return "process_limit"
    if usage.memory_bytes > limits.memory_bytes:
        return "memory_limit"
    if disk_bytes + usage.held_disk_bytes > limits.disk_bytes:
        return "disk_limit"
    return None


class Watch:
    """Looks at a running box again and again; `pause_s` says how soon."""

    pause_s = 0.02

    def __init__(self, pid: int, work: Path, limits: BoxLimits, own_processes: int = 0) -> None:
        self._pid = pid
        self._work = work
        self._limits = limits
        self._own_processes = own_processes
        self._disk_bytes = 0
        self._next_disk = 0.0

    def breach(self) -> Breach | None:
        """The limit that is broken now, if one is."""
        pids = descendants(self._pid)
        usage = measure(pids, self._work)
        usage = replace(usage, processes=usage.processes - self._own_processes)
        self.pause_s = _CROWDED_S if usage.processes > self._limits.processes // 8 else _POLL_S
        found = breach(usage, self._disk(), self._limits)
        if found == "memory_limit":
            usage = replace(usage, memory_bytes=fair_memory(pids))
            found = breach(usage, self._disk_bytes, self._limits)
        return found

    def _disk(self) -> int:
        """Space of the work folder. Looking takes a tenth of the time at most: a folder may hold very many files."""
        begin = time.monotonic()
        if begin >= self._next_disk:
            self._disk_bytes = folder_bytes(self._work, self._limits.disk_bytes)
            self._next_disk = begin + 10 * (time.monotonic() - begin)
        return self._disk_bytes


def measure(pids: Iterable[int], work: Path) -> Usage:
    """What these processes use. Memory is the sum of resident sets, or private memory plus memory files where that is
    more: data in a memfd needs no mapping. What the kernel holds for them counts as well."""
    numbers = tuple(pids)
    resident, private = _resident(numbers)
    held = _held(numbers, work)
    return Usage(len(numbers), max(resident, private + held.memory_files) + held.buffers, held.on_disk)


def fair_memory(pids: Iterable[int]) -> int:
    """The same with proportional set sizes: exact where processes share pages, as forked ones do, but slow to ask for."""
    numbers = tuple(pids)
    held = _held(numbers)
    mapped = [_proportional(pid) for pid in numbers]
    own, shared = sum(m.own for m in mapped), sum(m.shared for m in mapped)
    return own + max(shared, held.memory_files) + held.buffers


def folder_bytes(folder: Path, enough: int) -> int:
    """Disk space of a folder, counted until it is more than `enough`. A folder in it that cannot be read or named counts
    as too much, or it would be a place to hide."""
    total = 0
    waiting = [str(folder)]
    while waiting and total <= enough:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    total += _entry_bytes(entry)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except FileNotFoundError:
            continue
        except OSError:
            return enough + 1
    return total


def _entry_bytes(entry: os.DirEntry[str]) -> int:
    try:
        return max(entry.stat(follow_symlinks=False).st_blocks * _BLOCK, _ENTRY_BYTES)
    except FileNotFoundError:
        return 0


def _resident(pids: Iterable[int]) -> tuple[int, int]:
    """Sum of resident sets and of their private part, in bytes; what is swapped out and page tables count in both."""
    resident = private = 0
    for pid in pids:
        status = _status(pid)
        hidden = status.get("VmSwap", 0) + status.get("VmPTE", 0)
        resident += status.get("VmRSS", 0) + hidden
        private += status.get("RssAnon", 0) + hidden
    return resident, private


def _status(pid: int) -> dict[str, int]:
    """Name → bytes, of the sizes in /proc/PID/status (proc(5)); empty for a process that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:
        return {}
    rows = [line.split() for line in lines if line.endswith(" kB")]
    return {name.rstrip(":"): int(size) * 1024 for name, size, _ in rows}


@dataclass(frozen=True)
class _Mapped:
    """Bytes that a process has mapped, each page divided by the number of processes that map it."""

    own: int
    """Swap and page tables included."""
    shared: int
    """Of memory files."""


def _proportional(pid: int) -> _Mapped:
    """The resident set where the kernel does not tell."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return _Mapped(_resident([pid])[0], 0)
    sizes = {row[0].rstrip(":"): int(row[1]) * 1024 for row in map(str.split, text.splitlines()[1:])}
    shared = sizes.get("Pss_Shmem", 0)
    hidden = sizes.get("SwapPss", 0) + _status(pid).get("VmPTE", 0)
    return _Mapped(sizes.get("Pss", 0) - shared + hidden, shared)


@dataclass(frozen=True)
class _Held:
    """Bytes that are held by descriptors."""

    memory_files: int = 0
    """memfds, and files without a name elsewhere than in the work folder."""
    on_disk: int = 0
    """Files without a name on the disk of the work folder."""
    buffers: int = 0
    """At most, of sockets and pipes."""


def _held(pids: Iterable[int], work: Path | None = None) -> _Held:
    place = _stat(work) if work else None
    disk = place.st_dev if place else None
    files: dict[tuple[int, int], int] = {}
    buffers: dict[tuple[int, int], int] = {}
    for entry in (_stat(path) for pid in pids for path in _descriptors(pid)):
        if entry is None:
            continue
        key = (entry.st_dev, entry.st_ino)
        if stat.S_ISREG(entry.st_mode) and entry.st_nlink == 0:
            files[key] = entry.st_blocks * _BLOCK
        elif stat.S_ISSOCK(entry.st_mode):
            buffers[key] = _socket_bytes()
        elif stat.S_ISFIFO(entry.st_mode):
            buffers[key] = _PIPE_BYTES
    on_disk = sum(size for (device, _), size in files.items() if device == disk)
    return _Held(sum(files.values()) - on_disk, on_disk, sum(buffers.values()))


@cache
def _socket_bytes() -> int:
    """What one socket may hold at most (socket(7)): no box can set SO_SNDBUF, and the last message may go beyond it."""
    try:
        return int(Path("/proc/sys/net/core/wmem_default").read_text()) + (64 << 10)
    except (OSError, ValueError):
        return 256 << 10


def _stat(path: str | Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _descriptors(pid: int) -> Iterator[str]:
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return
    for name in names:
        yield f"/proc/{pid}/fd/{name}"
