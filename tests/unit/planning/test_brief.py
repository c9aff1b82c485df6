"""The brief for the writer of the next candidates."""

from collections.abc import Callable

import pytest

from hiera_mcp.model.contract import Contract
from hiera_mcp.model.plan import Strategy
from hiera_mcp.model.space import Direction, Space
from hiera_mcp.planning.brief import failures, render_brief
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


def test_the_first_brief_says_that_there_is_no_parent(contract: Callable[..., Contract], strategy: Strategy) -> None:
    c = contract()
    assert "skeleton" in render_brief(c, gather(c), strategy, left=6)


def test_on_cpu_there_is_no_stream(contract: Callable[..., Contract], strategy: Strategy) -> None:
    c = contract("cpu")
    text = render_brief(c, gather(c), strategy.model_copy(update={"space": Space.CPP_LIBRARIES_PYTORCH}), left=1)
    assert "cudaStream_t" not in text
    assert "cpu_source.cpp" in text and "model_new.py" in text
