"""Statistics of repeated timings: medians with order-statistic intervals. Pure; no assumption on the distribution."""

import math
from collections.abc import Sequence

Interval = dict[str, float]
"""An Interval of the model as plain data: median, low, high."""


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def median_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Median with its order-statistic interval.

    The interval from the r-th smallest to the r-th largest of n values covers the population's median with probability
    1 − 2·P(Binomial(n, ½) < r). The largest r that keeps `confidence` is taken; with fewer than six values even the
    whole range covers less, and the range is given.
    """
    ordered = sorted(values)
    r = _rank(len(ordered), confidence)
    return {"median": median(ordered), "low": ordered[r - 1], "high": ordered[-r]}


def mean_interval(values: Sequence[float]) -> Interval:
    """Mean with its 95 % normal interval, in the same shape (KernelBench reports means)."""
    n = len(values)
    mean = sum(values) / n
    variance = sum((v - mean) ** 2 for v in values) / max(n - 1, 1)
    half = 1.96 * math.sqrt(variance / n)
    return {"median": mean, "low": mean - half, "high": mean + half}


def _rank(n: int, confidence: float) -> int:
    below, rank = 0.0, 1
    for k in range(n // 2):
        below += math.comb(n, k) * 0.5**n
        if 1 - 2 * below < confidence:
            break
        rank = k + 1
    return rank


def rounds_for(seconds_per_round: float, budget: float, least: int, most: int) -> int:
    """How many rounds fit into `budget` seconds, between `least` and `most`."""
    return max(least, min(most, int(budget / max(seconds_per_round, 1e-9))))
