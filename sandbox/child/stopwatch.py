"""Timing of the reference inside the judge, and the cache flush that goes before it."""

import time
from collections.abc import Callable
from typing import Any

from hiera_mcp.sandbox.child.machine import l2_cache, last_level_cache
from hiera_mcp.sandbox.child.timing import median

CPU_FLUSH_LIMIT = 128 << 20
"""A larger flush would take most of the time of an evaluation."""

FILLS = 16
"""So often a GPU's flush is written before a timed call. Once takes some 30 us, and a process that has just waited needs longer
than that to issue what it times; then what the device waits for the host would count. Seen on an H200 for a kernel of 12 us:
42 us behind one fill after a short wait, 80 to 100 us behind one to three after 20 ms, 45 us behind six, 12 us behind twelve."""

EMPTY_PAIRS = 41
"""Pairs of events around nothing."""

COPY_BYTES, COPIES = 256 << 20, 5
"""Large enough to leave every L2 cache, small enough to fit beside a task."""


class HostStopwatch:
    """Processor: a monotonic clock; the judge flushes for both sides, since the last-level cache is shared."""

    flush_by_runner = False

    def __init__(self) -> None:
        import torch

        wanted = 2 * last_level_cache()
        size = min(wanted, CPU_FLUSH_LIMIT)
        self.cache = "cold" if size >= wanted else "partly_cold"
        self._memory: Any = torch.zeros(size // 4, dtype=torch.int32)

    def flush(self) -> None:
        """Read and write more than the caches hold, with all threads, so that private caches are emptied too."""
        self._memory.add_(1)

    def time(self, call: Callable[[], Any], flush: bool) -> tuple[Any, float]:
        """The result of `call`, and its seconds."""
        if flush:
            self.flush()
        start = time.perf_counter()
        result = call()
        return result, time.perf_counter() - start

    def sync(self) -> None:
        """Nothing runs behind our back on the processor."""

    def overhead(self) -> float:
        """Nothing worth taking off: reading the clock takes some 50 ns."""
        return 0.0

    def copy_bandwidth(self) -> float | None:
        """None: the floor of a contract for `cpu` was measured on this host already."""
        return None


class CudaStopwatch:
    """GPU: events on the current stream; the flush is still running when the call is issued, as in the runner."""

    flush_by_runner = True

    def __init__(self, device: str) -> None:
        import torch

        self._cuda: Any = torch.cuda
        self.cache = "cold"
        self._device = device
        l2 = l2_cache(device)
        if not l2:
            self.cache = "partly_cold"  # nobody knows whether the flush is enough
        self.flush_bytes = max(2 * l2, 64 << 20)
        self._memory: Any = torch.zeros(self.flush_bytes, dtype=torch.uint8, device=device)
        self._fill = 0

    def flush(self) -> None:
        """Nothing: the runner flushes on its own stream."""

    def time(self, call: Callable[[], Any], flush: bool) -> tuple[Any, float]:
        """The result of `call`, and its seconds on the device."""
        start, end = self._cuda.Event(enable_timing=True), self._cuda.Event(enable_timing=True)
        self._cuda.synchronize()
        if flush:
            for _ in range(FILLS):
                self._fill ^= 0xFF
                self._memory.fill_(self._fill)
        start.record()
        result = call()
        end.record()
        self._cuda.synchronize()
        return result, start.elapsed_time(end) / 1e3

    def sync(self) -> None:
        self._cuda.synchronize()

    def overhead(self) -> float:
        """Seconds that two events read around nothing, queued behind the flush as around a call: the median of many.

        The runner's events do the same on the same GPU; what it claims of its own is not asked.
        """
        return median([self.time(_nothing, flush=True)[1] for _ in range(EMPTY_PAIRS)])

    def copy_bandwidth(self) -> float | None:
        """Bytes read and written per second by a device-to-device copy; the best of a few."""
        import torch

        source = torch.ones(COPY_BYTES, dtype=torch.uint8, device=self._device)
        target = torch.empty_like(source)
        best = min(self.time(lambda: target.copy_(source), flush=False)[1] for _ in range(COPIES))
        return 2 * COPY_BYTES / best


def _nothing() -> None:
    return None


def stopwatch_for(device: str) -> HostStopwatch | CudaStopwatch:
    return HostStopwatch() if device == "cpu" else CudaStopwatch(device)
