"""The runner's view of the processor: maps shared memory and times calls with a monotonic clock. Standard library only."""

import contextlib
import ctypes
import mmap
import os
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

from hiera_mcp.sandbox.child.host_counters import Counts, counted

_MAP_SHARED, _MAP_PRIVATE, _MAP_FIXED, _MAP_ANONYMOUS, _MAP_POPULATE = 0x1, 0x2, 0x10, 0x20, 0x8000

Call = Callable[[int], int]
"""Calls the candidate once on the buffer set with this number; returns its code."""
Deliver = Callable[[int], object]
"""Brings the results of that call into the set's output buffers, where the candidate has not written them itself."""


class HostPlatform:
    """Memory and clock of target `cpu`."""

    stream: int | None = None
    counts: Counts | None = None
    """Of the block that was marked last."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mmap.restype = ctypes.c_void_p
        self._libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        self._libc.malloc.restype = ctypes.c_void_p
        self._libc.malloc.argtypes = [ctypes.c_size_t]

    def map(self, size: int, writable: bool, fd: int) -> int:
        """Map an arena and give the descriptor back; returns its address.

        Python's mmap hides the address of a read-only mapping, hence libc's.
        """
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        try:
            return self._mmap(None, size, protection, _MAP_SHARED | _MAP_POPULATE, fd)
        finally:
            os.close(fd)

    def map_at(self, address: int, size: int, fd: int) -> None:
        """Put the memory of a descriptor, for reading, in the place of what lies at `address`; gives the descriptor back."""
        try:
            self._mmap(address, size, mmap.PROT_READ, _MAP_SHARED | _MAP_POPULATE | _MAP_FIXED, fd)
        finally:
            os.close(fd)

    def reserve(self, size: int) -> int:
        """The address of room for `size` bytes, which reads as zeros until something is mapped in it."""
        return self._mmap(None, size, mmap.PROT_READ, _MAP_PRIVATE | _MAP_ANONYMOUS, -1)

    def unmap(self, address: int, size: int) -> None:
        """Give up what lies at `address`."""
        self._libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))

    def _mmap(self, address: int | None, size: int, protection: int, flags: int, fd: int) -> int:
        address = self._libc.mmap(address, size, protection, flags, fd, 0)
        error = ctypes.get_errno()
        if address is None or address == ctypes.c_void_p(-1).value:
            raise OSError(error, f"mmap of {size} bytes: {os.strerror(error)}")
        return address

    def allocate(self, size: int) -> int:
        """The address of new memory, which lives as long as the process."""
        address = self._libc.malloc(size)
        if not address:
            raise MemoryError(f"no {size} bytes of memory")
        return address

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy bytes from one address to another."""
        ctypes.memmove(target, source, size)

    def once(self, call: Callable[[], int]) -> tuple[int, int]:
        """Run something once; its code, and its time in nanoseconds."""
        start = time.perf_counter_ns()
        code = call()
        return code, time.perf_counter_ns() - start

    def each(self, call: Call, deliver: Deliver, sets: Sequence[int], flush: bool) -> tuple[int, list[int]]:
        """Call for each buffer set, each call timed by itself: the first code that is not 0, and nanoseconds.

        `flush` is the judge's work here: the last-level cache is shared, and its own flush cannot be faked.
        """
        times: list[int] = []
        for s in sets:
            code, ns = self.once(lambda s=s: call(s))
            times.append(ns)
            if code:
                return code, times
            deliver(s)
        return 0, times

    def batch(self, call: Call, deliver: Deliver, sets: Sequence[int]) -> tuple[int, list[int]]:
        """Call and deliver for each buffer set without a pause, timed together."""
        start = time.perf_counter_ns()
        for s in sets:
            code = call(s)
            if code:
                return code, [time.perf_counter_ns() - start]
            deliver(s)
        return 0, [time.perf_counter_ns() - start]

    @contextlib.contextmanager
    def marked(self) -> Generator[None]:
        """Count what the block costs the processor."""
        with counted() as self.counts:
            yield

    def sample(self, call: Callable[[], int], own: Path) -> tuple[int, dict[str, Any]]:
        """Call again and again for a while: the first code that is not 0, and where the threads were meanwhile.

        Args:
            own: the candidate's library.
        """
        from hiera_mcp.sandbox.child.host_samples import sampled  # here: no other runner waits for their imports
        from hiera_mcp.sandbox.child.host_symbols import placed

        code, calls = 0, 0
        with sampled(float((self.counts or {}).get("seconds", 0))) as hits:
            until = time.perf_counter() + hits.seconds
            while not (code or hits.refused) and (not calls or time.perf_counter() < until):
                code, calls = call(), calls + 1
        found = {"calls": calls, "full": hits.full, "refused": hits.refused, "clock": hits.clock}
        return code, {**found, **placed(hits.addresses, own)}

    def describe(self, code: int) -> str:
        """What a return code says; nothing on cpu, where codes are the candidate's own."""
        return ""

    def mark(self) -> None:
        """Nothing can be left running on the processor."""
