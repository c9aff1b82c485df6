"""Which candidates are kept, decided by intervals and never by point estimates alone.

Rule: the *best* candidate is the one with the greatest lower bound of its speed-up. *Parents* are the best one and those
that are not significantly slower than it, at most three; among equals, a space that is not yet represented goes first.
"""

import math
from collections.abc import Sequence
from typing import Literal

from hiera_mcp.model.evaluation import Comparison, Interval, Timing
from hiera_mcp.planning.evidence import Outcome

SESSION_ERROR = 0.01
"""Relative difference between two evaluations of one candidate that their own intervals cannot show, as a 95 % half-width.

Each interval comes from one process on one allocation; two evaluations differ in both. Set to the accuracy to which the
judge's clocks are required to agree.
"""
SMALLEST_SPEEDUP = 1e-9
"""Stands for a bound of zero, so that its logarithm exists."""


def compare(this: Timing, other: Timing) -> Comparison:
    """Is `this` faster than `other`?

    Each was timed against eager PyTorch in the same minutes, so the speed-ups are compared and slow changes of the
    machine cancel. On the log scale the half-widths of both intervals and SESSION_ERROR add in quadrature.
    """
    ratio = speedup_ratio(this.speedup, other.speedup)
    return Comparison(
        verdict=_verdict(ratio),
        ratio=ratio,
        basis="ratio of the speed-ups over eager PyTorch, 95 % intervals combined on the log scale, "
        f"{SESSION_ERROR:.0%} added for the difference between two sessions",
    )


def speedup_ratio(this: Interval, other: Interval) -> Interval:
    """Time of the other / time of this one, with its 95 % interval. A bound of zero is taken as SMALLEST_SPEEDUP."""
    a, b = _logs(this), _logs(other)
    middle = a[1] - b[1]
    down = math.hypot(a[1] - a[0], b[2] - b[1], SESSION_ERROR)
    up = math.hypot(a[2] - a[1], b[1] - b[0], SESSION_ERROR)
    return Interval(median=math.exp(middle), low=math.exp(middle - down), high=math.exp(middle + up))


def best_of(outcomes: Sequence[Outcome]) -> Outcome | None:
    """The candidate with the greatest lower bound of its speed-up; the earlier one when two are equal."""
    timed = _ranked(outcomes)
    return timed[0] if timed else None


def select_parents(outcomes: Sequence[Outcome], limit: int = 3) -> tuple[Outcome, ...]:
    """The candidates from which the next ones are derived, the best first."""
    ranked = _ranked(outcomes)
    if not ranked:
        return ()
    best, rest = ranked[0], [o for o in ranked[1:] if not _slower(o, ranked[0])]
    chosen = [best]
    while rest and len(chosen) < limit:
        spaces = {o.space for o in chosen}
        chosen.append(next((o for o in rest if o.space not in spaces), rest[0]))
        rest.remove(chosen[-1])
    return tuple(chosen)


def _logs(interval: Interval) -> tuple[float, float, float]:
    low, middle, high = (math.log(max(x, SMALLEST_SPEEDUP)) for x in (interval.low, interval.median, interval.high))
    return low, middle, high


def _ranked(outcomes: Sequence[Outcome]) -> list[Outcome]:
    timed = [(o.timing.speedup.low, o) for o in outcomes if o.timing is not None]
    return [o for _, o in sorted(timed, key=lambda pair: -pair[0])]  # stable: the earlier one first


def _slower(this: Outcome, than: Outcome) -> bool:
    if this.timing is None or than.timing is None:
        return False
    return compare(this.timing, than.timing).verdict == "slower"


def _verdict(ratio: Interval) -> Literal["faster", "slower", "no_difference"]:
    if ratio.low > 1:
        return "faster"
    return "slower" if ratio.high < 1 else "no_difference"
