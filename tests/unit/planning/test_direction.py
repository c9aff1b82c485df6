"""The direction decision on golden situations."""

from collections.abc import Callable
from typing import Any

import pytest

from hiera_mcp.model.plan import CriterionScore
from hiera_mcp.model.profile import DirectionSigns, Profile
from hiera_mcp.model.space import Direction
from hiera_mcp.planning.decide import Proposal, plan_direction
from hiera_mcp.planning.evidence import Evidence, Outcome

GEMM = (("gemm", 1.0, 1),)

FIRST_STEPS: dict[str, tuple[dict[str, Any], Direction]] = {
    "a matrix product in strict float32": ({"work": GEMM, "intensity": 600}, Direction.REUSE_PIPELINING),
    "a matrix product with Tensor Cores": (
        {"work": GEMM, "intensity": 600, "tensor_cores": True},
        Direction.TENSOR_CORE_INSTRUCTIONS,
    ),
    "a streaming operator": ({}, Direction.MEMORY_TRANSACTIONS),
    "a chain that fusion would shorten": (
        {"work": (("elementwise", 1.0, 6),), "fusion": 4},
        Direction.REUSE_PIPELINING,
    ),
    "a norm written as five operators": (
        {"work": (("elementwise", 0.6, 4), ("reduction", 0.4, 1)), "fusion": 2.5},
        Direction.REUSE_PIPELINING,
    ),
    "a prefix sum": ({"work": (("scan", 1.0, 1),)}, Direction.PARALLELISM),
    "an MLP on a CPU": ({"target": "cpu", "work": GEMM, "intensity": 60}, Direction.TENSOR_CORE_INSTRUCTIONS),
}


@pytest.mark.parametrize(("options", "expected"), FIRST_STEPS.values(), ids=FIRST_STEPS.keys())
def test_the_first_recommendation_fits_the_workload(
    options: dict[str, Any], expected: Direction, evidence: Callable[..., Evidence]
) -> None:
    assert plan_direction(evidence(**options)).recommended == expected


@pytest.mark.parametrize(
    ("bottleneck", "expected"),
    [
        ("memory", Direction.MEMORY_TRANSACTIONS),
        ("latency", Direction.PARALLELISM),
        ("launch", Direction.PARALLELISM),
    ],
)
def test_a_profile_outweighs_the_structure_of_the_task(
    bottleneck: str, expected: Direction, evidence: Callable[..., Evidence], outcome: Callable[..., Outcome]
) -> None:
    profile = Profile.model_validate({"bottleneck": bottleneck, "summary": "s", "metrics": ()})
    parent = outcome("a", 1.5, floor_ratio=3.0, direction=None)
    e = evidence([parent], profile=profile, work=(("elementwise", 0.5, 1), ("reduction", 0.5, 1)))
    assert plan_direction(e).recommended == expected


def test_what_the_counters_say_of_a_direction_is_its_score_and_is_quoted(evidence: Callable[..., Evidence]) -> None:
    signs = DirectionSigns(direction=Direction.CONTROL_FLOW, score=4, signs_for=("9.7 of 32 lanes work",))
    profile = Profile(bottleneck="compute", summary="s", metrics=(), directions=(signs,))
    row = _row(plan_direction(evidence(profile=profile)), Direction.CONTROL_FLOW, "profile_signs")
    assert row.score == 4
    assert "9.7 of 32 lanes work" in row.explanation
    assert row.evidence["signs_in_profile"] == {"for": ["9.7 of 32 lanes work"], "against": []}


def test_without_a_profile_its_criterion_is_null_with_the_reason(evidence: Callable[..., Evidence]) -> None:
    row = _row(plan_direction(evidence()), Direction.PARALLELISM, "profile_signs")
    assert row.score is None
    assert "no candidate has passed yet" in row.explanation


@pytest.mark.parametrize(("registers", "score"), [(32, 0), (64, 2), (128, 3), (255, 4)])
def test_without_a_profile_the_registers_of_the_build_bound_the_occupancy(
    registers: int, score: float, evidence: Callable[..., Evidence], outcome: Callable[..., Outcome]
) -> None:
    kernels = [{"kernel": "k", "registers": registers}]
    row = _row(plan_direction(evidence([outcome("a", 2.0, kernels=kernels)])), Direction.PARALLELISM, "static_signs")
    assert row.score == score and f"{registers} registers a thread" in row.explanation
    assert row.evidence["occupancy"] is None


def test_at_the_floor_no_direction_has_headroom(
    evidence: Callable[..., Evidence], outcome: Callable[..., Outcome]
) -> None:
    proposal = plan_direction(evidence([outcome("a", 5.0, floor_ratio=1.08)]))
    assert {_row(proposal, d, "headroom").score for d in Direction} == {0}


def test_on_cpu_vector_instructions_are_allowed_without_tensor_cores(evidence: Callable[..., Evidence]) -> None:
    options = {o.option: o for o in plan_direction(evidence(target="cpu", tensor_cores=False)).options}
    assert options["tensor_core_instructions"].gates == ()
    affinity = _row(plan_direction(evidence(target="cpu")), Direction.TENSOR_CORE_INSTRUCTIONS, "task_affinity")
    assert affinity.score == 3  # all of the time is dense arithmetic


def test_a_direction_that_keeps_losing_gives_way(
    evidence: Callable[..., Evidence], outcome: Callable[..., Outcome]
) -> None:
    won = outcome("a", 2.0, round=1, direction=Direction.PARALLELISM)
    lost = [outcome(f"l{r}", 1.5, round=r, direction=Direction.MEMORY_TRANSACTIONS) for r in (2, 3)]
    proposal = plan_direction(evidence([won, *lost]))
    assert proposal.recommended != Direction.MEMORY_TRANSACTIONS
    assert "rounds 2, 3" in proposal.reason_required["memory_transactions"]


def _row(proposal: Proposal, direction: Direction, criterion: str) -> CriterionScore:
    option = proposal.option(direction)
    return next(c for c in option.criteria if c.criterion == criterion)
