"""Candidates that were timed in one session: what that says, whom it is worth, and what it decides."""

from collections.abc import Callable

import pytest

from hiera_mcp.model.evaluation import Comparison, Interval
from hiera_mcp.model.work import PairReport
from hiera_mcp.planning.evidence import Outcome
from hiera_mcp.planning.parents import best_of, in_one_session, rivals, select_parents, turned, versus


def session(ratio: float, spread: float = 0.002) -> Comparison:
    interval = Interval(median=ratio, low=ratio * (1 - spread), high=ratio * (1 + spread))
    found = in_one_session(PairReport(ratio=interval, rounds=21))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("ratio", "spread", "verdict"),
    [
        (1.03, 0.01, "faster"),
        (1 / 1.03, 0.01, "slower"),
        (1.03, 0.04, "no_difference"),
        (1.004, 0.0, "no_difference"),  # two runners of one program differ by as much
    ],
)
def test_a_session_tells_what_its_interval_and_the_place_in_memory_allow(
    ratio: float, spread: float, verdict: str
) -> None:
    assert session(ratio, spread).verdict == verdict


def test_a_session_that_was_not_possible_says_nothing() -> None:
    assert in_one_session(PairReport(reason="the other candidate: the runner ended")) is None


def test_the_other_candidate_sees_the_comparison_the_other_way_about() -> None:
    here = session(1.1)
    there = turned(here)
    assert (here.verdict, there.verdict) == ("faster", "slower")
    assert there.ratio.low == pytest.approx(1 / here.ratio.high)


def test_a_session_overrules_two_evaluations(outcome: Callable[..., Outcome]) -> None:
    first = outcome("first", 2.0)
    second = outcome("second", 2.1, paired={"k_first": turned(session(1.05))})
    assert best_of([first, outcome("second", 2.1)]) == outcome("second", 2.1)
    assert best_of([first, second]) == first
    comparison = versus(second, first)
    assert comparison is not None and comparison.verdict == "slower"


def test_without_a_difference_the_earlier_one_stays_the_best_and_both_are_parents(
    outcome: Callable[..., Outcome],
) -> None:
    first = outcome("first", 2.0)
    second = outcome("second", 2.05, paired={"k_first": session(1.001)})
    assert best_of([first, second]) == first
    assert select_parents([first, second]) == (first, second)


def test_only_close_candidates_meet_in_a_session(outcome: Callable[..., Outcome]) -> None:
    parent, best, far = outcome("parent", 1.95), outcome("best", 2.0), outcome("far", 1.0)
    close, much_better = outcome("close", 2.02), outcome("much_better", 4.0)
    before = [far, parent, best]
    met = {o.name for o in rivals([*before, close], "k_close", "k_parent")}
    assert met == {"parent", "best"}
    assert rivals([*before, close], "k_close", "k_far") == (best,)
    assert rivals([*before, much_better], "k_much_better", "k_parent") == ()


def test_nobody_meets_twice_and_nobody_meets_what_came_later_or_failed(outcome: Callable[..., Outcome]) -> None:
    first, failed = outcome("first", 2.0), outcome("failed", status="wrong_output")
    again = outcome("again", 2.0, paired={"k_first": session(1.0)})
    assert rivals([first, again], "k_again", "k_first") == ()
    assert rivals([first, again], "k_first", None) == ()
    assert rivals([failed, first], "k_first", "k_failed") == ()
    assert rivals([first, failed], "k_failed", "k_first") == ()
