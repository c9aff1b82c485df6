"""What one stretch of work costs the processor: the kernel's accounts of this process, and its performance counters.

Accounts (getrusage(2)) are there on every host. Counters are those of the perf subsystem (perf_event_open(2)), user code only, as
an ordinary user may count them; a virtual machine may offer none of them, and a sandbox may refuse the call. What is counted
covers all threads of the process, those that are started meanwhile too.

Source: linux/perf_event.h; perf_event_open(2).
"""

import ctypes
import errno
import os
import resource
import struct
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager

HARDWARE, SOFTWARE, CACHE = 0, 1, 3
LAST_LEVEL, DATA_TLB = 2, 3
READ_MISS = 1 << 16
EVENTS = {
    "cycles": (HARDWARE, 0),
    "instructions": (HARDWARE, 1),
    "branches": (HARDWARE, 4),
    "branch_misses": (HARDWARE, 5),
    "l1_read_misses": (CACHE, READ_MISS),
    "llc_read_misses": (CACHE, LAST_LEVEL | READ_MISS),
    "dtlb_read_misses": (CACHE, DATA_TLB | READ_MISS),
}
_SYSCALL = {"x86_64": 298, "aarch64": 241}
INHERIT = 1 << 1
_DISABLED, _NO_KERNEL, _NO_HYPERVISOR = 1 << 0, 1 << 5, 1 << 6
_TIMES = 1 | 2
"""Read format: how long the counter was wanted, and how long it really counted, since events may have to take turns."""
_ENABLE, _DISABLE = 0x2400, 0x2401
_ATTRIBUTES = 112
_libc = ctypes.CDLL(None, use_errno=True)

Counts = dict[str, float | str]
"""`HostCounts` as plain data."""


@contextmanager
def counted() -> Generator[Counts]:
    """Yields a dict that is filled at the end."""
    found: Counts = {}
    counters, refused = _open_all()
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    try:
        with switched(fd for _, fd in counters):
            yield found
    finally:
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
        found |= {"seconds": seconds, "processors": len(os.sched_getaffinity(0)), **_accounts(before, after)}
        found |= {**_read_all(counters), "refused": refused}


def _accounts(before: resource.struct_rusage, after: resource.struct_rusage) -> dict[str, float]:
    return {
        "user_seconds": after.ru_utime - before.ru_utime,
        "system_seconds": after.ru_stime - before.ru_stime,
        "page_faults": after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt,
        "waits": after.ru_nvcsw - before.ru_nvcsw,
        "preemptions": after.ru_nivcsw - before.ru_nivcsw,
    }


def _open_all() -> tuple[list[tuple[str, int]], str]:
    """(event, descriptor) for each event and thread; and why there are none."""
    opened: list[tuple[str, int]] = []
    problem = ""
    for name, (kind, config) in EVENTS.items():
        for thread in map(int, os.listdir("/proc/self/task")):
            fd, error = open_event(kind, config, thread)
            if fd >= 0:
                opened.append((name, fd))
            else:
                problem = problem or explain(error)
    return opened, "" if opened else problem


def open_event(
    kind: int, config: int, thread: int, processor: int = -1, flags: int = INHERIT, period: int = 0, sample: int = 0
) -> tuple[int, int]:
    """The descriptor of an event of user code, switched off; or -1, with the error's number.

    Args:
        processor: the only one on which it counts; -1: all.
        period: count between two samples, which hold what `sample` says (PERF_SAMPLE_*); 0: none.
    """
    flags |= _DISABLED | _NO_KERNEL | _NO_HYPERVISOR
    head = struct.pack("IIQQQQQ", kind, _ATTRIBUTES, config, period, sample, _TIMES, flags)
    number = _SYSCALL.get(os.uname().machine)
    if number is None:
        return -1, errno.ENOSYS
    attributes = head.ljust(_ATTRIBUTES, b"\0")
    fd = _libc.syscall(number, attributes, thread, processor, -1, ctypes.c_ulong(8))  # 8: closed in what is executed
    return fd, ctypes.get_errno() if fd < 0 else 0


@contextmanager
def switched(events: Iterable[int]) -> Generator[None]:
    """The events of these descriptors count during the block, those that threads have inherited too."""
    found = tuple(events)
    for fd in found:
        _libc.ioctl(fd, _ENABLE, 0)
    try:
        yield
    finally:
        for fd in found:
            _libc.ioctl(fd, _DISABLE, 0)


def explain(error: int) -> str:
    """What a refusal of perf_event_open means for the user."""
    if error in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return "the processor offers no performance counters here, as in most virtual machines"
    if error in (errno.EACCES, errno.EPERM):
        return (
            "performance counters are refused; kernel.perf_event_paranoid must be 2 or less, and a container allow it"
        )
    return f"performance counters cannot be opened: {os.strerror(error)}"


def _read_all(counters: list[tuple[str, int]]) -> dict[str, float]:
    """Counts by event, over all threads; scaled up where a counter had to share its place with others."""
    totals: dict[str, float] = {}
    for name, fd in counters:
        value, wanted, ran = struct.unpack("QQQ", os.read(fd, 24))
        os.close(fd)
        totals[name] = totals.get(name, 0.0) + (value * wanted / ran if ran else 0.0)
    return totals
