"""Candidates are compared by intervals: a point estimate never decides alone."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.model.evaluation import Interval, Timing
from hiera_mcp.model.space import Space
from hiera_mcp.planning.evidence import Outcome
from hiera_mcp.planning.parents import SESSION_ERROR, best_of, compare, select_parents, speedup_ratio


@pytest.mark.parametrize(
    ("this", "other", "spread", "verdict"),
    [
        (2.0, 1.0, 0.02, "faster"),
        (1.0, 2.0, 0.02, "slower"),
        (1.05, 1.0, 0.05, "no_difference"),
        (1.05, 1.0, 0.005, "faster"),
        (1.005, 1.0, 0.0, "no_difference"),  # below what two sessions can tell apart, however narrow the intervals
    ],
)
def test_the_verdict_follows_the_combined_interval(
    this: float, other: float, spread: float, verdict: str, timing: Callable[..., Timing]
) -> None:
    assert compare(timing(this, spread), timing(other, spread)).verdict == verdict


def test_speedups_are_compared_so_that_a_slower_machine_does_not_matter(timing: Callable[..., Timing]) -> None:
    """The same candidate, measured while everything took twice as long."""
    comparison = compare(timing(2.0, seconds=1e-3), timing(2.0, seconds=2e-3))
    assert comparison.verdict == "no_difference"
    assert comparison.ratio.median == pytest.approx(1.0)


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    middle = draw(st.floats(1e-3, 1e3))
    down, up = draw(st.floats(0, 1)), draw(st.floats(0, 1))
    return Interval(median=middle, low=middle * math.exp(-down), high=middle * math.exp(up))


@given(intervals(), intervals())
def test_swapping_the_two_inverts_the_ratio(a: Interval, b: Interval) -> None:
    there, back = speedup_ratio(a, b), speedup_ratio(b, a)
    assert there.median == pytest.approx(1 / back.median)
    assert there.low == pytest.approx(1 / back.high)


@given(intervals(), intervals())
def test_the_combined_interval_is_never_narrower_than_either(a: Interval, b: Interval) -> None:
    ratio = speedup_ratio(a, b)
    width = math.log(ratio.high / ratio.low)
    assert width >= max(math.log(a.high / a.low), math.log(b.high / b.low)) / math.sqrt(2) - 1e-9
    assert width >= 2 * SESSION_ERROR - 1e-9


@given(intervals())
def test_nothing_is_faster_than_itself(a: Interval) -> None:
    ratio = speedup_ratio(a, a)
    assert ratio.low < 1 < ratio.high


def test_a_bound_of_zero_says_how_little_is_known() -> None:
    vague, sure = Interval(median=1, low=0, high=2), Interval(median=5, low=4.9, high=5.1)
    ratio = speedup_ratio(sure, vague)
    assert ratio.low > 1 and ratio.high > 1e6  # 5 is above even the upper bound of 2; how far is unknown
    assert speedup_ratio(vague, vague).low < 1 < speedup_ratio(vague, vague).high


def test_the_best_has_the_greatest_lower_bound_not_the_greatest_median(outcome: Callable[..., Outcome]) -> None:
    sure, lucky = outcome("sure", 2.0, spread=0.01), outcome("lucky", 2.2, spread=0.4)
    assert best_of([lucky, sure]) == sure


def test_failed_candidates_are_never_parents(outcome: Callable[..., Outcome]) -> None:
    assert select_parents([outcome("x", status="wrong_output"), outcome("p", status="pending")]) == ()
    assert best_of([]) is None


def test_clearly_slower_candidates_are_dropped_and_equals_are_kept(outcome: Callable[..., Outcome]) -> None:
    best, equal, slow = outcome("best", 2.0), outcome("equal", 1.98), outcome("slow", 1.2)
    assert select_parents([slow, equal, best]) == (best, equal)


def test_a_noisy_candidate_that_may_be_as_fast_stays(outcome: Callable[..., Outcome]) -> None:
    best, noisy = outcome("best", 2.0, spread=0.01), outcome("noisy", 1.7, spread=0.4)
    assert select_parents([best, noisy]) == (best, noisy)


def test_among_equals_a_space_that_is_not_yet_there_goes_first(outcome: Callable[..., Outcome]) -> None:
    same = [outcome(f"c{i}", 2.0 - i * 0.001) for i in range(4)]
    other = outcome("lib", 1.99, space=Space.CUDA_LIBRARIES)
    assert select_parents([*same, other]) == (same[0], other, same[1])


def test_there_are_at_most_three_parents(outcome: Callable[..., Outcome]) -> None:
    assert len(select_parents([outcome(f"c{i}", 2.0) for i in range(10)])) == 3


def test_of_two_equal_candidates_the_earlier_one_is_best(outcome: Callable[..., Outcome]) -> None:
    first, second = outcome("first", 2.0), outcome("second", 2.0)
    assert best_of([first, second]) == first
