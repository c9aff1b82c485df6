"""What can this host's processor do?"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Rates:
    """What this host's processor reached, with torch's number of threads."""

    bandwidth: float
    """Bytes per second."""
    flops: float
    """FLOP per second."""


def rates(working_set: int) -> Rates:
    """Best bandwidth of a copy and of a read-only sum on as many bytes as the task moves (1 to 128 MiB), and the best
    rate of a float32 matrix product.

    Best, not mean: a floor must not be too high. On a busy host all threads together hardly ever run undisturbed, so
    one thread is measured too, by its own processor time, which waiting does not lengthen.
    """
    import torch

    threads = torch.get_num_threads()
    together = _rates(working_set, time.perf_counter)
    torch.set_num_threads(1)
    try:
        alone = _rates(working_set, time.thread_time)
    finally:
        torch.set_num_threads(threads)
    return Rates(max(together.bandwidth, alone.bandwidth), max(together.flops, alone.flops * threads))


def _rates(working_set: int, clock: Callable[[], float]) -> Rates:
    import torch

    n = max(1 << 20, min(working_set, 128 << 20)) // 8
    source, sink = torch.ones(n), torch.zeros(n)
    copy = 8 * n / best_seconds(lambda: sink.copy_(source), clock)
    read = 4 * n / best_seconds(lambda: source.sum(), clock)
    a = torch.ones(512, 512)
    product = 2 * 512**3 / best_seconds(lambda: a @ a, clock)
    return Rates(max(copy, read), product)


def best_seconds(function: Callable[[], Any], clock: Callable[[], float], budget: float = 0.05) -> float:
    """Shortest of at least three calls, within about `budget` seconds."""
    function()
    best, end, calls = float("inf"), time.perf_counter() + budget, 0
    while calls < 3 or time.perf_counter() < end:
        start = clock()
        function()
        best = min(best, clock() - start)
        calls += 1
    return max(best, 1e-9)
