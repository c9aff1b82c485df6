"""Where the threads of this process are while it works: user addresses, sampled by a clock of the kernel's.

perf_event_open(2) with a software clock needs no performance counters, so it works in virtual machines too. The calling thread
has one event per processor, which the threads that it starts inherit (the kernel maps no ring for an inherited event that
follows a thread over all processors); each thread that is there already has one of its own. Code of the kernel is not
sampled. Where the call is refused, threads are stopped instead (host_stops.py).

Source: linux/perf_event.h (perf_event_mmap_page, PERF_RECORD_*); perf_event_open(2).
"""

import mmap
import os
import struct
import threading
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hiera_mcp.sandbox.child.host_counters import INHERIT, SOFTWARE, explain, open_event, switched
from hiera_mcp.sandbox.child.host_stops import watched

SAMPLED_S = 1.0
"""So long are calls sampled; longer when one takes longer."""
STOPPED_S = 3.0
"""The same where threads have to be stopped, which gives fewer samples."""
CPU_CLOCK = 0
BY_ADDRESS = 1
"""PERF_SAMPLE_IP: a sample holds the address, and nothing else."""
SAMPLES, SHORTEST_NS = 2000, 100_000
"""So many samples of a thread that works all the time; the shortest time between two."""
RING_BYTES = 64 << 10
_HEAD_AT = 1024
_SAMPLE = 9
_LONGEST = 64
"""Bytes of a record, at most."""
_HEADER = struct.Struct("=IHH")
_ADDRESS = struct.Struct("=Q")


@dataclass
class Hits:
    """What was seen."""

    addresses: Counter[int] = field(default_factory=Counter[int])
    full: int = 0
    """Rings that had no room for more: what came last is in none."""
    refused: str = ""
    """Why there are none."""
    clock: str = ""
    """Why threads were stopped instead of sampled by the clock; empty when they were not."""

    @property
    def seconds(self) -> float:
        """So long should the work to be sampled take, at least."""
        return STOPPED_S if self.clock else SAMPLED_S


@contextmanager
def sampled(seconds: float) -> Generator[Hits]:
    """Sample all threads during the block; what was seen is there at its end.

    Args:
        seconds: what one piece of the work takes; all of it takes at least `Hits.seconds`, and at most one piece more.
    """
    rings, refused = _open_all(max(SHORTEST_NS, round(max(seconds, SAMPLED_S) * 1e9 / SAMPLES)))
    if rings:
        with _by_clock(rings) as found:
            yield found
        return
    with watched() as (addresses, problem):
        yield Hits(addresses, refused=f"{refused}; {problem}" if problem else "", clock=refused)


@contextmanager
def _by_clock(rings: list["_Ring"]) -> Generator[Hits]:
    found = Hits()
    try:
        with switched(ring.fd for ring in rings):
            yield found
    finally:
        for ring in rings:
            data = ring.read()
            found.addresses.update(records(data))
            found.full += len(data) > ring.size - _LONGEST
            ring.close()


def records(data: bytes) -> list[int]:
    """The addresses of the samples in the content of a ring; what is cut off, or something else, is left out."""
    bodies = (body for kind, body in _records(data) if kind == _SAMPLE and len(body) >= _ADDRESS.size)
    return [_ADDRESS.unpack_from(body)[0] for body in bodies]


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _HEADER.size <= len(data):
        kind, _, size = _HEADER.unpack_from(data, at)
        if size < _HEADER.size or at + size > len(data):
            return
        yield kind, data[at + _HEADER.size : at + size]
        at += size


class _Ring:
    """The memory that one event writes its samples to. It is read once, at the end: what finds no room is left out."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.size = max(RING_BYTES, mmap.PAGESIZE)
        self._memory = mmap.mmap(fd, mmap.PAGESIZE + self.size)

    def read(self) -> bytes:
        head = struct.unpack_from("=Q", self._memory, _HEAD_AT)[0]
        return self._memory[mmap.PAGESIZE : mmap.PAGESIZE + head]

    def close(self) -> None:
        self._memory.close()
        os.close(self.fd)


def _open_all(period_ns: int) -> tuple[list[_Ring], str]:
    """A ring per event; and why there are none."""
    me = threading.get_native_id()
    here = [(me, processor, INHERIT) for processor in os.sched_getaffinity(0)]
    there = [(thread, -1, 0) for thread in map(int, os.listdir("/proc/self/task")) if thread != me]
    rings: list[_Ring] = []
    problem = ""
    for thread, processor, flags in (*here, *there):
        fd, error = open_event(SOFTWARE, CPU_CLOCK, thread, processor, flags, period_ns, BY_ADDRESS)
        if fd >= 0:
            try:
                rings.append(_Ring(fd))
            except OSError as e:  # no memory may be locked for it
                os.close(fd)
                error = e.errno or 0
        if error:
            problem = problem or explain(error)
    return rings, "" if rings else problem
