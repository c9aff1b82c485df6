"""The brief for the writer of the next candidates."""

from collections.abc import Callable

import pytest

from hiera_mcp.model.contract import Contract
from hiera_mcp.model.plan import Strategy
from hiera_mcp.model.profile import Launch, Profile, SourceLine
from hiera_mcp.model.space import Direction, Space
from hiera_mcp.planning.brief import MOST_CHARACTERS, failures, render_brief
from hiera_mcp.planning.evidence import Outcome, gather


@pytest.fixture
def strategy() -> Strategy:
    return Strategy(
        title="Wide loads",
        space=Space.CUDA,
        direction=Direction.MEMORY_TRANSACTIONS,
        steps=("Load float4.", "Store float4."),
        constraints=("Rows are multiples of four.",),
        parameters={"threads_per_block": 256},
        predicted_metric="wide_load_share",
        predicted_change="rises",
    )


def test_equal_failures_are_told_once_with_their_count(outcome: Callable[..., Outcome]) -> None:
    rows = failures(
        [
            outcome("a", status="compile_error", reason="line 12: identifier 'foo' is undefined"),
            outcome("b", status="compile_error", reason="line 99: identifier 'bar' is undefined"),
            outcome("c", status="wrong_output", reason="worst error 7.1"),
            outcome("d", 2.0),
            outcome("e", status="not_run"),
        ]
    )
    assert [(f.status, f.count, f.candidates) for f in rows] == [
        ("compile_error", 2, ("a", "b")),
        ("wrong_output", 1, ("c",)),
    ]
    assert "hiera_candidate_check" in rows[0].remedy


def test_the_brief_holds_all_that_a_writer_needs(
    contract: Callable[..., Contract], outcome: Callable[..., Outcome], strategy: Strategy
) -> None:
    c = contract()
    outcomes = [
        outcome("good", 2.0, floor_ratio=1.8, idea="two loads per thread"),
        outcome("bad", status="wrong_output", reason="y differs at the border"),
    ]
    text = render_brief(c, gather(c, outcomes), strategy, left=4)
    for part in (
        "good (k_good, cuda) 2.00× [1.96, 2.04], 1.80× the floor: two loads per thread",
        "2. Store float4.",
        "threads_per_block = 256",
        "Must move: wide_load_share (rises).",
        "Rows are multiples of four.",
        "wrong_output ×1: y differs at the border",
        "up to 4",
        "cudaStream_t",
        "cuda_source.cu",
        "TF32 is not allowed",
    ):
        assert part in text
    assert len(text.split()) < 600


def test_a_failure_that_was_corrected_names_the_correction(outcome: Callable[..., Outcome]) -> None:
    rows = failures(
        [
            outcome("broken", status="crash", reason="illegal address"),
            outcome("other", status="timeout", reason="endless"),
            outcome("again", status="crash", reason="illegal address", parent_id="k_broken"),
            outcome("right", 2.0, parent_id="k_again", idea="the tail is masked"),
        ]
    )
    assert {f.status: f.fixed_in for f in rows} == {"crash": "right (the tail is masked)", "timeout": ""}


def test_the_profile_of_the_best_is_told_with_its_hottest_line(
    contract: Callable[..., Contract], outcome: Callable[..., Outcome], strategy: Strategy
) -> None:
    line = SourceLine(
        file="cuda_source.cu",
        line=8,
        text=" y[i] = x[i];",
        samples=9,
        share=0.9,
        stall="",
        stall_share=0,
        instruction="STG",
    )
    launch = Launch(kernel="k", share=1.0, seconds=None, metrics=(), lines=(line,))
    profile = Profile(bottleneck="memory", summary="Bound by memory.", metrics=(), launches=(launch,))
    c = contract()
    text = render_brief(c, gather(c, [outcome("a", 2.0)], profile=profile), strategy, left=6)
    assert "Profile of the best: Bound by memory. Most samples: cuda_source.cu:8 `y[i] = x[i];`." in text
    without = render_brief(c, gather(c, [outcome("a", 2.0)]), strategy, left=6)
    assert "No profile: the best candidate has not been profiled." in without


@pytest.mark.parametrize("left", [6, 3, 2, 1])
def test_there_is_advice_for_as_many_candidates_as_the_round_takes(
    left: int, contract: Callable[..., Contract], outcome: Callable[..., Outcome], strategy: Strategy
) -> None:
    c = contract()
    text = render_brief(c, gather(c, [outcome("a", 2.0), outcome("b", 2.0)]), strategy, left=left)
    advice = text.partition("## The next candidates")[2].partition("##")[0]
    assert 1 <= advice.count("- One") + advice.count("- Up to") + advice.count("One candidate:") <= left
    if left == 6:
        assert "(threads_per_block)" in advice and "starts from b" in advice


def test_a_brief_stays_within_its_size_whatever_the_run_has_seen(
    contract: Callable[..., Contract], outcome: Callable[..., Outcome], strategy: Strategy
) -> None:
    long = "words and more " * 400
    c = contract().model_copy(update={"notes": (long,) * 40})
    c = c.model_copy(update={"floor": c.floor.model_copy(update={"arithmetic": long})})
    ids = [f"{chr(97 + i)}{'x' * 62}" for i in range(20)]
    failed = [outcome(n, status="crash", reason=f"{n[0] * (i + 3)} {long}") for i, n in enumerate(ids)]
    fixed = [outcome(f"y{n}"[:64], 2.0, parent_id=f"k_{n}", idea=long) for n in ids]
    profile = Profile(bottleneck="memory", summary=long, metrics=())
    text = render_brief(c, gather(c, [*failed, *fixed], profile=profile), strategy, left=6)
    assert len(text) - len(strategy.model_dump_json()) < MOST_CHARACTERS
    assert f"32 more: hiera://contracts/{c.id}/lists/notes" in text


def test_the_first_brief_says_that_there_is_no_parent(contract: Callable[..., Contract], strategy: Strategy) -> None:
    c = contract()
    assert "skeleton" in render_brief(c, gather(c), strategy, left=6)


def test_on_cpu_there_is_no_stream(contract: Callable[..., Contract], strategy: Strategy) -> None:
    c = contract("cpu")
    text = render_brief(c, gather(c), strategy.model_copy(update={"space": Space.CPP_LIBRARIES_PYTORCH}), left=1)
    assert "cudaStream_t" not in text
    assert "cpu_source.cpp" in text and "model_new.py" in text
