"""Boxed program: what can this host's processor do? Writes a HostRates as plain data.

    python -P -m hiera_mcp.sandbox.child.host_rates [--result /box/result.json]

Best, not mean: a floor must not be too high. On a busy host all threads together hardly ever run undisturbed, so one thread
is measured too, by its own processor time, which waiting does not lengthen.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIZES = tuple(1 << n for n in range(20, 28))
"""Working sets, 1 to 128 MiB: caches make the small ones faster."""
SIDE = 512
"""Of the matrix product."""
BUDGET_S = 0.05
"""Seconds for each measurement, at least three calls."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="host_rates")
    parser.add_argument("--result", type=Path, default=Path("/box/result.json"))
    options = parser.parse_args(argv)
    options.result.write_text(json.dumps({"rates": measured()}))
    return 0


def measured() -> dict[str, Any]:
    """Best bandwidth of a copy and of a read-only sum for each working set, and the best rates of matrix products."""
    import torch

    threads = torch.get_num_threads()
    together = _rates(time.perf_counter)
    torch.set_num_threads(1)
    alone = _rates(time.thread_time)
    return {
        "bandwidth": [[size, max(together[size], alone[size])] for size in SIZES],
        "flops": {unit: max(together[unit], threads * alone[unit]) for unit in ("fp32", "fp64")},
    }


def _rates(clock: Callable[[], float]) -> dict[Any, float]:
    import torch

    rates: dict[Any, float] = {size: _bandwidth(size, clock) for size in SIZES}
    for unit, dtype in (("fp32", torch.float32), ("fp64", torch.float64)):
        a = torch.ones(SIDE, SIDE, dtype=dtype)
        rates[unit] = 2 * SIDE**3 / best_seconds(lambda a=a: a @ a, clock)
    return rates


def _bandwidth(size: int, clock: Callable[[], float]) -> float:
    import torch

    n = size // 8
    source, sink = torch.ones(n), torch.zeros(n)
    copy = 8 * n / best_seconds(lambda: sink.copy_(source), clock)
    both = torch.ones(2 * n)
    return max(copy, 8 * n / best_seconds(lambda: both.sum(), clock))


def best_seconds(function: Callable[[], Any], clock: Callable[[], float]) -> float:
    """Shortest of at least three calls."""
    function()
    best, end, calls = float("inf"), time.perf_counter() + BUDGET_S, 0
    while calls < 3 or time.perf_counter() < end:
        start = clock()
        function()
        best = min(best, clock() - start)
        calls += 1
    return max(best, 1e-9)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
