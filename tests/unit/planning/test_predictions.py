"""What a strategy predicts, read from its words, and whether it came true."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.knowledge_base.entries import packaged_entries
from hiera_mcp.model.evaluation import Comparison, Interval
from hiera_mcp.planning.predictions import FORMS, GOOD, Expectation, by_time, expectation, judged, told
from hiera_mcp.planning.signals import READERS


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("-30 %", Expectation(rises=False, factor=0.7)),
        ("−50 %, as both reads go away", Expectation(rises=False, factor=0.5)),
        ("+20%", Expectation(rises=True, factor=1.2)),
        ("+30 points", Expectation(rises=True, points=30)),
        ("×2", Expectation(rises=True, factor=2)),
        ("0.5×", Expectation(rises=False, factor=0.5)),
        ("falls by 2x", Expectation(rises=False, factor=0.5)),
        ("Falls by 30 per cent", Expectation(rises=False, factor=0.7)),
        ("rises by 50 %", Expectation(rises=True, factor=1.5)),
        ("falls to 0.1", Expectation(rises=False, bound=0.1)),
        ("below 0.1", Expectation(rises=False, bound=0.1)),
        ("rises above 60", Expectation(rises=True, bound=60)),
        ("> 60 %", Expectation(rises=True, bound=60)),
        ("falls", Expectation(rises=False)),
        ("rises: 4 to 8× on such loops", Expectation(rises=True)),
        ("", Expectation(rises=False)),
        ("it will be much better", None),
        ("about 30 %", None),
        ("30 %", None),
        ("to 0.1", None),
    ],
)
def test_a_change_is_read_from_the_beginning_of_the_words(text: str, change: Expectation | None) -> None:
    assert expectation(text, "time") == change


def test_every_form_that_an_error_offers_is_understood() -> None:
    assert all(expectation(form.strip("` ")) for form in FORMS.split(", "))


@given(st.text(max_size=40))
def test_no_words_break_the_reading(text: str) -> None:
    expectation(text, "time")


@pytest.mark.parametrize(
    ("expected", "before", "after", "moved", "verdict"),
    [
        ("-30 %", 10.0, 6.9, True, "held"),
        ("-30 %", 10.0, 8.5, True, "partly"),
        ("-30 %", 10.0, 9.9, False, "refuted"),
        ("-30 %", 10.0, 12.0, True, "refuted"),
        ("falls", 10.0, 9.0, True, "held"),
        ("falls to 0", 10.0, 0.0, True, "held"),
        ("-100 %", 10.0, 0.0, True, "held"),
        ("rises above 60", 10.0, 55.0, True, "partly"),
        ("+30 points", 10.0, 38.0, True, "held"),
        ("×2", 0.0, 5.0, True, "held"),
        ("-30 %", None, 6.9, None, "unknown"),
    ],
)
def test_a_prediction_holds_partly_or_not(
    expected: str, before: float | None, after: float | None, moved: bool | None, verdict: str
) -> None:
    assert judged("pipe", expected, before, after, moved).verdict == verdict


@pytest.mark.parametrize(
    ("verdict", "ratio", "metric", "expected", "found"),
    [
        ("faster", 2.0, "time", "-50 %", "held"),
        ("faster", 1.2, "time", "-50 %", "partly"),
        ("no_difference", 1.01, "time", "-50 %", "refuted"),
        ("slower", 0.8, "time", "", "refuted"),
        ("faster", 2.0, "speedup", "×2", "held"),
        ("faster", 2.0, "floor_ratio", "falls by 40 %", "held"),
    ],
)
def test_a_prediction_about_time_rests_on_the_comparison_with_its_interval(
    verdict: str, ratio: float, metric: str, expected: str, found: str
) -> None:
    interval = Interval(median=ratio, low=ratio * 0.99, high=ratio * 1.01)
    comparison = Comparison.model_validate({"verdict": verdict, "ratio": interval, "basis": "b"})
    assert by_time(metric, expected, comparison, 4.0).verdict == found


def test_a_line_tells_what_was_said_what_was_seen_and_the_verdict() -> None:
    line = told(judged("time", "-30 %: one read less", 2e-3, 1e-3, True))
    assert line == "time -30 %: held (0.002 → 0.001 s)"
    assert "refuted, it did not move" in told(judged("l2_hit", "rises", 50.0, 50.0, False))


def test_what_can_be_predicted_is_a_signal_or_the_time() -> None:
    assert set(GOOD) <= {*READERS, "time"}


def test_every_shipped_entry_names_something_that_can_be_held_against_a_profile() -> None:
    assert {entry.must_move for entry in packaged_entries()} <= set(GOOD)


def test_a_text_without_a_change_is_no_verdict(timing: Callable[..., object]) -> None:
    found = judged("time", "much better", 2.0, 1.0, True)
    assert (found.verdict, found.reason) == ("unknown", "the strategy names no change of time")
