"""Which candidates are kept, decided by intervals and never by point estimates alone.

Rule: the *best* candidate is the one with the greatest lower bound of its speed-up; where two were timed against each other
in one session, that decides between them, and of two without a difference the earlier one stays. *Parents* are the best one
and those that are not significantly slower than it, at most three; among equals, a space that is not yet represented goes
first.
"""

import math
from collections.abc import Sequence
from typing import Literal

from hiera_mcp.model.evaluation import Comparison, Interval, Timing
from hiera_mcp.model.work import PairReport
from hiera_mcp.planning.evidence import Outcome

SESSION_ERROR = 0.01
"""Relative difference between two evaluations of one candidate that their own intervals cannot show, as a 95 % half-width.

Each interval comes from one process on one allocation; two evaluations differ in both. Set to the accuracy to which the
judge's clocks are required to agree.
"""
PLACEMENT_ERROR = 0.005
"""Relative difference between two runners of one program in one session, which have their memory at other places, as a
half-width. benchmarks/timing_quality.py measures it."""
CLEAR = 1.05
"""From this ratio on, interval and all, two evaluations tell two candidates apart without a session of both."""
SMALLEST_SPEEDUP = 1e-9
"""Stands for a bound of zero, so that its logarithm exists."""


def compare(this: Timing, other: Timing) -> Comparison:
    """Is `this` faster than `other`?

    Each was timed against eager PyTorch in the same minutes, so the speed-ups are compared and slow changes of the
    machine cancel. On the log scale the half-widths of both intervals and SESSION_ERROR add in quadrature.
    """
    ratio = speedup_ratio(this.speedup, other.speedup)
    return Comparison(
        verdict=verdict_of(ratio),
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


def in_one_session(report: PairReport) -> Comparison | None:
    """What a session of both says; None where there was none. Its interval gets PLACEMENT_ERROR in quadrature."""
    if report.ratio is None:
        return None
    low, middle, high = _logs(report.ratio)
    down, up = math.hypot(middle - low, PLACEMENT_ERROR), math.hypot(high - middle, PLACEMENT_ERROR)
    ratio = Interval(median=math.exp(middle), low=math.exp(middle - down), high=math.exp(middle + up))
    at = f" at {report.ran_at}" if report.ran_at else ""
    return Comparison(
        verdict=verdict_of(ratio),
        ratio=ratio,
        basis=f"both in one session, in turns on the same inputs, {report.rounds} rounds{at}; 99 % interval, "
        f"{PLACEMENT_ERROR:.1%} added for where their memory lies",
    )


def turned(comparison: Comparison) -> Comparison:
    """The same comparison as the other candidate sees it."""
    r = comparison.ratio
    ratio = Interval(median=1 / r.median, low=1 / r.high, high=1 / r.low)
    return comparison.model_copy(update={"ratio": ratio, "verdict": verdict_of(ratio)})


def versus(this: Outcome, other: Outcome) -> Comparison | None:
    """How two candidates compare: by their session if there was one, else by their speed-ups; None without times."""
    if this.timing is None or other.timing is None:
        return None
    return this.paired.get(other.candidate_id) or compare(this.timing, other.timing)


def is_close(this: Timing, other: Timing) -> bool:
    """Whether two evaluations do not tell by CLEAR which is faster, so that a session of both is worth its seconds."""
    ratio = speedup_ratio(this.speedup, other.speedup)
    return ratio.low < CLEAR and ratio.high > 1 / CLEAR


def rivals(outcomes: Sequence[Outcome], candidate_id: str, parent_id: str | None) -> tuple[Outcome, ...]:
    """Those that a candidate has yet to meet in one session: its parent, and the best of the others, where it is close.

    Args:
        outcomes: all of the run, in the order of submission; only those before the candidate can be its rivals.
    """
    ids = [o.candidate_id for o in outcomes]
    before = list(outcomes[: ids.index(candidate_id)])
    this = outcomes[ids.index(candidate_id)]
    found = [best_of(before), *(o for o in before if o.candidate_id == parent_id)]
    met = {o.candidate_id: o for o in found if o is not None and o.candidate_id not in this.paired}
    return tuple(o for o in met.values() if this.timing and o.timing and is_close(this.timing, o.timing))


def best_of(outcomes: Sequence[Outcome]) -> Outcome | None:
    """The best candidate by the rule above, going through them in the order of submission."""
    best: Outcome | None = None
    for outcome in outcomes:
        if outcome.timing is not None and (best is None or _replaces(outcome, best)):
            best = outcome
    return best


def select_parents(outcomes: Sequence[Outcome], limit: int = 3) -> tuple[Outcome, ...]:
    """The candidates from which the next ones are derived, the best first."""
    best = best_of(outcomes)
    if best is None:
        return ()
    rest = [o for o in _ranked(outcomes) if o is not best and not _slower(o, best)]
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
    found = versus(this, than)
    return found is not None and found.verdict == "slower"


def _replaces(this: Outcome, best: Outcome) -> bool:
    """Whether a later candidate takes the place of the best one so far."""
    session = this.paired.get(best.candidate_id)
    if session is not None:
        return session.verdict == "faster"
    assert this.timing is not None and best.timing is not None
    return this.timing.speedup.low > best.timing.speedup.low


def verdict_of(ratio: Interval) -> Literal["faster", "slower", "no_difference"]:
    """What the interval of a ratio of times says."""
    if ratio.low > 1:
        return "faster"
    return "slower" if ratio.high < 1 else "no_difference"
