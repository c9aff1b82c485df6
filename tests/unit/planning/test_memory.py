"""What earlier rounds say of spaces and directions, and how much weight they get."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_records import a_round, records, rounds

from hiera_mcp.model.memory import Cell, RoundRecord, newest
from hiera_mcp.model.plan import CriterionScore
from hiera_mcp.model.space import Direction, Space
from hiera_mcp.model.switches import Switches
from hiera_mcp.planning.decide import plan_direction, plan_space
from hiera_mcp.planning.evidence import Evidence
from hiera_mcp.planning.memory import (
    MOST,
    Situation,
    cells_of,
    direction_priors,
    gain,
    space_priors,
)
from hiera_mcp.planning.rubrics import load_rubric

Make = Callable[..., Evidence]
CPU = {"target": "cpu", "work": (("gemm", 1.0, 1),), "space": Space.CPP}
HERE = Situation(cpu=True, operator_kind="gemm", bound="memory", device="cpu", space=Space.CPP)
PAR, REU = Direction.PARALLELISM, Direction.REUSE_PIPELINING


def rows(evidence: Evidence) -> dict[str, CriterionScore]:
    """Direction → its row for the criterion `memory`."""
    options = plan_direction(evidence).options
    return {o.option: next(c for c in o.criteria if c.criterion == "memory") for o in options}


def advantages(cells: Sequence[Cell], situation: Situation = HERE) -> dict[Direction, float]:
    priors = direction_priors(cells, situation)
    assert priors is not None
    return {d: p.advantage for d, p in priors.items()}


# --- the gain of a round ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("speedup", "before", "factor"),
    [
        (2.0, None, 2.0),
        (3.0, 1.5, 2.0),
        (0.6, 0.3, 2.0),
        (None, 2.0, 1 / 4),
        (0.5, None, 0.5),
        (1.5, 3.0, 0.5),
        (90.0, None, 16.0),
        (0.01, None, 1 / 16),
    ],
)
def test_a_gain_is_over_what_was_there_and_a_loss_counts_as_one(
    speedup: float | None, before: float | None, factor: float
) -> None:
    assert math.exp(gain(a_round(speedup, before))) == pytest.approx(factor)


def test_a_gain_within_the_error_of_measurement_is_not_won() -> None:
    won = [cells_of([found])[0].won for found in (a_round(1.02), a_round(2.04, 2.0), a_round(None), a_round(3.0, 2.0))]
    assert won == [0, 0, 0, 1]


# --- estimates --------------------------------------------------------------------------------------------------------


def test_what_gained_more_is_expected_to_gain_more() -> None:
    seen = advantages(cells_of([*rounds(6, 3.0, direction=REU), *rounds(6, 1.2, direction=PAR)]))
    assert seen[REU] > 1 > seen[PAR]
    assert seen[REU] > max(v for d, v in seen.items() if d is not REU)


def test_what_always_failed_is_expected_to_gain_less_than_what_was_never_tried() -> None:
    seen = advantages(cells_of(rounds(6, None, direction=PAR)))
    assert seen[PAR] < min(v for d, v in seen.items() if d is not PAR)


def test_the_more_rounds_the_further_the_estimate_moves() -> None:
    def after(n: int) -> float:
        return advantages(cells_of([*rounds(n, 3.0, direction=REU), *rounds(n, None, direction=PAR)]))[REU]

    assert 1 < after(1) < after(4) < after(16)


def test_rounds_on_the_same_kind_of_operator_outweigh_others() -> None:
    """Reuse pays for matrix products and not for copies: each is believed where it was seen."""
    cells = cells_of(
        [
            *rounds(6, 3.0, direction=REU, operator_kind="gemm"),
            *rounds(6, 1.2, direction=PAR, operator_kind="gemm"),
            *rounds(6, 1.2, direction=REU, operator_kind="movement"),
            *rounds(6, 3.0, direction=PAR, operator_kind="movement"),
        ]
    )
    gemm, movement = (advantages(cells, HERE.model_copy(update={"operator_kind": k})) for k in ("gemm", "movement"))
    assert gemm[REU] > gemm[PAR]
    assert movement[PAR] > movement[REU]


def test_a_kind_that_was_never_seen_backs_off_to_what_holds_for_others() -> None:
    cells = cells_of([*rounds(6, 3.0, direction=REU), *rounds(6, 1.2, direction=PAR)])
    seen = advantages(cells, HERE.model_copy(update={"operator_kind": "scan"}))
    assert seen[REU] > seen[PAR]


@pytest.mark.parametrize("apart", ["operator_kind", "task_id"])
def test_a_direction_is_not_better_because_it_was_tried_where_much_was_to_be_had(apart: str) -> None:
    """Every direction gains 3 times in one place and nothing in another; one was tried in the first place only."""
    rich: dict[str, Any]
    poor: dict[str, Any]
    rich, poor = ({apart: name} for name in ("gemm", "movement"))
    cells = cells_of(
        [
            *rounds(8, 3.0, direction=REU, **rich),
            *rounds(8, 3.0, direction=PAR, **rich),
            *rounds(8, 1.0, direction=PAR, **poor),
        ]
    )
    seen = advantages(cells, HERE.model_copy(update={"operator_kind": "scan"}))
    assert seen[REU] == pytest.approx(seen[PAR], rel=0.1)


def test_a_direction_is_not_worse_because_it_was_tried_in_a_poor_space() -> None:
    """In own code both gain 2 times; PyTorch, where nothing gains, was tried with one of them."""
    cells = cells_of(
        [
            *(r for task in "abcd" for r in rounds(2, 2.0, direction=REU, task_id=task)),
            *(r for task in "abcd" for r in rounds(2, 2.0, direction=PAR, task_id=task)),
            *(r for task in "abcd" for r in rounds(2, 0.9, direction=PAR, task_id=task, space="cpp_libraries_pytorch")),
        ]
    )
    seen = advantages(cells)
    assert seen[REU] == pytest.approx(seen[PAR], rel=0.05)
    priors = space_priors(cells, HERE.model_copy(update={"space": None}), (Space.CPP, Space.CPP_LIBRARIES_PYTORCH))
    assert priors is not None
    assert priors[Space.CPP].advantage > 1.2 * priors[Space.CPP_LIBRARIES_PYTORCH].advantage


def test_of_two_that_gain_nothing_the_slower_one_is_expected_to_gain_less() -> None:
    seen = advantages(cells_of([*rounds(6, 0.95, direction=REU), *rounds(6, 0.3, direction=PAR)]))
    assert seen[REU] > 1 > seen[PAR]


def test_first_rounds_are_compared_with_first_rounds() -> None:
    """Later rounds gain less, whatever is tried in them."""
    cells = cells_of([*rounds(20, 4.0, direction=REU), *rounds(20, 1.1 * 4, 4.0, direction=PAR)])
    seen = advantages(cells)
    assert seen[REU] == pytest.approx(seen[PAR], rel=0.15)


def test_a_round_that_had_nothing_left_to_gain_says_nothing() -> None:
    """Parallelism was tried twenty times on code at the floor."""
    cells = cells_of([*rounds(2, 3.0, direction=REU), *rounds(20, 8.0, 8.0, direction=PAR)])
    seen = advantages(cells)
    assert seen[PAR] == pytest.approx(seen[Direction.CONTROL_FLOW])


def test_the_same_difference_counts_for_less_where_rounds_scatter() -> None:
    """Both times reuse gains twice as much as parallelism on average; once every round does, once by chance."""
    steady = [*rounds(8, 4.0, direction=REU), *rounds(8, 2.0, direction=PAR)]
    lucky = [*rounds(4, 16.0, direction=REU), *rounds(4, 1.0, direction=REU, origin="o_2")]
    unlucky = [*rounds(4, 4.0, direction=PAR), *rounds(4, 1.0, direction=PAR, origin="o_2")]
    told, lost = (advantages(cells_of(found)) for found in (steady, [*lucky, *unlucky]))
    assert told[REU] / told[PAR] > 1.2 * lost[REU] / lost[PAR]
    assert lost[REU] > lost[PAR]


def test_spaces_are_compared_in_the_same_way() -> None:
    cells = cells_of([*rounds(6, 3.0, space="cpp_libraries"), *rounds(6, 1.1, space="cpp")])
    priors = space_priors(cells, HERE.model_copy(update={"space": None}), (Space.CPP, Space.CPP_LIBRARIES))
    assert priors is not None
    assert priors[Space.CPP_LIBRARIES].advantage > 1 > priors[Space.CPP].advantage


def test_rounds_on_another_platform_say_nothing() -> None:
    on_gpu = cells_of(rounds(6, 3.0, device="NVIDIA H200", space="cuda"))
    assert direction_priors(on_gpu, HERE) is None
    assert space_priors(on_gpu, HERE, (Space.CPP,)) is None


def test_rounds_without_a_direction_count_for_spaces_alone() -> None:
    cells = cells_of(rounds(6, 3.0, direction=None))
    assert direction_priors(cells, HERE) is None
    assert space_priors(cells, HERE, (Space.CPP,)) is not None


@settings(max_examples=40)
@given(st.lists(records(), max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_matter(found: list[RoundRecord], draw: Any) -> None:
    shuffled = draw.sample(found, len(found))
    assert cells_of(newest(shuffled)) == cells_of(newest(found))


@settings(max_examples=40)
@given(st.lists(records(), min_size=1, max_size=8), records())
def test_estimates_are_bounded_and_their_mean_is_the_average_option(found: list[RoundRecord], now: RoundRecord) -> None:
    situation = Situation(
        cpu=now.device == "cpu", operator_kind=now.operator_kind, bound=now.bound, device=now.device, space=now.space
    )
    priors = direction_priors(cells_of(found), situation)
    if priors is None:
        assert not any(r.direction and (r.device == "cpu") == situation.cpu for r in found)
        return
    logs = [math.log(p.advantage) for p in priors.values()]
    assert math.fsum(logs) == pytest.approx(0, abs=1e-9)
    assert max(map(abs, logs)) <= MOST
    assert len({p.weight for p in priors.values()}) == 1 and all(0 < p.weight < 1 for p in priors.values())


# --- in the rubric ----------------------------------------------------------------------------------------------------


def test_without_earlier_runs_the_criterion_is_null_with_the_reason(evidence: Make) -> None:
    for row in rows(evidence(**CPU)).values():
        assert row.score is None and "no other run has a verdict yet" in row.explanation
        assert row.evidence == {"earlier_runs": None}


def test_a_run_without_memory_does_not_read_it(evidence: Make) -> None:
    memory = cells_of(rounds(9, 3.0, direction=REU))
    e = evidence(**CPU, memory=memory, switches=Switches(memory=False))
    assert e.memory == ()
    for row in rows(e).values():
        assert row.score is None and "no-memory" in row.explanation
    assert plan_direction(e).options == plan_direction(evidence(**CPU, switches=Switches(memory=False))).options


def test_rounds_elsewhere_leave_the_criterion_null(evidence: Make) -> None:
    memory = cells_of(rounds(9, 3.0, device="NVIDIA H200", space="cuda"))
    assert all(row.score is None for row in rows(evidence(**CPU, memory=memory)).values())


def test_the_score_quotes_what_it_rests_on(evidence: Make) -> None:
    memory = cells_of([*rounds(3, 3.0, direction=REU), *rounds(2, None, direction=REU, operator_kind="conv")])
    row = rows(evidence(**CPU, memory=memory))[REU]
    assert row.explanation.startswith("5 earlier rounds (3 on such operators): 3 gained, in 2 nothing passed;")
    quoted: Any = row.evidence["earlier_runs"]
    assert (quoted["rounds"], quoted["alike"], quoted["won"], quoted["failed"]) == (5, 3, 3, 2)
    assert "No earlier round tried it" in rows(evidence(**CPU, memory=memory))[PAR].explanation


def test_its_weight_grows_with_what_is_known_up_to_the_rubrics(evidence: Make) -> None:
    most = load_rubric("direction").criterion("memory").weight
    weights = [rows(evidence(**CPU, memory=cells_of(rounds(n, 2.0))))[PAR].weight for n in (1, 4, 16, 1000)]
    assert weights == sorted(weights) and weights[0] < 0.2 * most and 0.95 * most < weights[-1] <= most


def test_it_can_turn_a_decision(evidence: Make) -> None:
    ranked = sorted(plan_direction(evidence(**CPU)).options, key=lambda o: -o.total)
    best, second = ranked[0].option, ranked[1].option
    memory = cells_of([*rounds(20, 4.0, direction=second), *rounds(20, direction=best)])
    assert plan_direction(evidence(**CPU, memory=memory)).recommended == second


def test_no_amount_of_memory_opens_a_gate(evidence: Make) -> None:
    """Tensor Cores are not legal, and no library is installed."""
    gpu: dict[str, Any] = {"target": "cuda:sm_90a", "work": (("gemm", 1.0, 1),), "intensity": 600}
    place: dict[str, Any] = {
        "device": "NVIDIA H200",
        "space": "cuda_libraries",
        "direction": Direction.TENSOR_CORE_INSTRUCTIONS,
    }
    memory = cells_of([*rounds(500, 4.0, **place)])
    e = evidence(**gpu, memory=memory, libraries=[])
    assert plan_direction(e).recommended != Direction.TENSOR_CORE_INSTRUCTIONS
    assert plan_direction(e).option(Direction.TENSOR_CORE_INSTRUCTIONS).gates
    assert plan_space(e).recommended != Space.CUDA_LIBRARIES
    assert plan_space(e).option(Space.CUDA_LIBRARIES).gates


def test_the_same_memory_gives_the_same_proposal(evidence: Make) -> None:
    memory = cells_of([*rounds(3, 3.0, direction=REU), *rounds(2, 1.4)])
    assert plan_space(evidence(**CPU, memory=memory)) == plan_space(evidence(**CPU, memory=memory))
