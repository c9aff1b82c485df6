"""Three clocks that must agree: what the runner claims, what the judge sees from outside, and the floor."""

import math
from dataclasses import dataclass
from typing import Any

from hiera_mcp.sandbox.child.measure import CASE, Samples
from hiera_mcp.sandbox.child.timing import median
from hiera_mcp.sandbox.child.workbench import Workbench

PAIRS, FEW_PAIRS = 7, 3
SHORT_BATCH_S, LONG_BATCH_S = 0.01, 0.05
"""Aimed lengths: so much shorter batch, and so much more in the longer one, that the protocol's noise is small beside it."""
MOST_CALLS = 4000
WARM_CALLS = 11
RELATIVE = 0.10
"""Allowed disagreement of claim and slope (measured on an H200: about 1 %; on a busy 2-core host: a few per cent)."""
COLD_RELATIVE, COLD_ABSOLUTE_S = 0.25, 200e-6
"""Allowed disagreement for one cold call: request and answer cost more, and vary more, with cold caches."""
BELOW_FLOOR = {"cpu": 0.25, "cuda": 0.5}
"""A cold call faster than this share of the memory floor is not believed. Not 1: outputs may stay in the cache, and an
honest candidate may leave out bytes that the reference's arithmetic never needed (a triangle, a diagonal)."""


@dataclass(frozen=True)
class Slope:
    """Batches, seconds per call."""

    claimed: float
    outside: float
    warm: float
    """Median claim of single calls with a warm cache."""
    empty: float
    """The slope of requests that call nothing: what counting and looping cost."""


def measure_slope(bench: Workbench, call_s: float) -> Slope:
    """Wall-clock slope over two batch sizes against the claims for the larger one; medians of several pairs."""
    small = min(MOST_CALLS // 4, max(1, math.ceil(SHORT_BATCH_S / max(call_s, 1e-7))))
    more = min(MOST_CALLS, max(1, math.ceil(LONG_BATCH_S / max(call_s, 1e-7))))
    pairs = PAIRS if (2 * small + more) * call_s * PAIRS < 3 else FEW_PAIRS
    claims: list[float] = []
    slopes: list[float] = []
    for _ in range(pairs):
        _, short = bench.run(CASE, _sets(bench, small), "batch")
        claimed, long = bench.run(CASE, _sets(bench, small + more), "batch")
        slopes.append((long - short) / more)
        claims.append(claimed[0] / (small + more))
    warm, _ = bench.run(CASE, _sets(bench, WARM_CALLS), "each")
    return Slope(median(claims), max(median(slopes), 0.0), median(warm), _empty_slope(bench))


def _empty_slope(bench: Workbench) -> float:
    _, short = bench.run(CASE, [], "batch")
    _, long = bench.run(CASE, [], "batch")
    return abs(long - short)


def _sets(bench: Workbench, count: int) -> list[int]:
    return [n % bench.sets for n in range(count)]


def disagreements(slope: Slope, samples: Samples, floor: dict[str, Any], device: str) -> list[str]:
    """What is not credible about the claims, with the numbers; empty when the clocks agree."""
    found: list[str] = []
    allowed = RELATIVE * slope.outside + slope.empty
    if abs(slope.claimed - slope.outside) > allowed:
        found.append(
            f"the runner claims {_us(slope.claimed)} per call in batches, the judge's clock outside says "
            f"{_us(slope.outside)} (allowed difference {_us(allowed)})"
        )
    found += _cold(samples)
    least = BELOW_FLOOR["cpu" if device == "cpu" else "cuda"] * floor["memory_seconds"]
    claimed = median(samples.candidate)
    if claimed < least:
        found.append(
            f"a cold call claims {_us(claimed)}, less than {_us(least)}: moving the data alone takes "
            f"{_us(floor['memory_seconds'])} ({floor['basis']})"
        )
    return found


def _cold(samples: Samples) -> list[str]:
    if not samples.empty:
        return []
    outside = median(samples.outside) - median(samples.empty)
    claimed = median(samples.candidate)
    if claimed >= outside * (1 - COLD_RELATIVE) - COLD_ABSOLUTE_S:
        return []
    text = f"the runner claims {_us(claimed)} for one cold call, the judge's clock outside says {_us(outside)} more "
    return [text + "than for a request that calls nothing"]


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.4g} us"
