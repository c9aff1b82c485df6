"""One sign after another: what makes it fire, what keeps it quiet, and that a missing metric never fires it."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hiera_mcp.model.profile import DirectionSigns, Launch
from hiera_mcp.model.space import Direction
from hiera_mcp.sandbox.profiling.directions import directions
from hiera_mcp.sandbox.profiling.facts import Facts, TaskFacts
from hiera_mcp.sandbox.profiling.metrics import METRICS
from hiera_mcp.sandbox.profiling.signs import signs

CF, PAR, MEM = Direction.CONTROL_FLOW, Direction.PARALLELISM, Direction.MEMORY_TRANSACTIONS
REU, TC = Direction.REUSE_PIPELINING, Direction.TENSOR_CORE_INSTRUCTIONS

Launches = Callable[..., Launch]
Tasks = Callable[..., TaskFacts]

FIRING: list[tuple[dict[str, Any], Direction, int, str]] = [
    ({"occupancy_pct": 12.0, "blocks_by_registers": 2.0, "blocks_by_warps": 16.0}, PAR, 4, "limited by registers"),
    ({"occupancy_pct": 50.0, "blocks_by_shared_memory": 2.0, "blocks_by_warps": 8.0}, PAR, 3, "shared memory"),
    ({"occupancy_pct": 6.0, "waves": 0.06}, PAR, 4, "0.06 of the places"),
    ({"waves": 1.03, "sm_cycles_most": 1800.0}, PAR, 4, "nearly empty"),
    ({"stalls": {"wait": 0.5}}, PAR, 3, "previous instruction"),
    ({"l2_atomics": 0.0, "l2_reductions": 60.0, "l2_reads": 40.0, "l2_writes": 0.0}, PAR, 4, "60% of the sectors"),
    ({"global_sectors": 800.0, "stalls": {"long_scoreboard": 0.9}}, MEM, 4, "88% of the global sectors"),
    (
        {
            "bank_conflicts_load": 31.0,
            "bank_conflicts_store": 0.0,
            "shared_wavefronts_load": 32.0,
            "shared_wavefronts_store": 1.0,
            "shared_data_pct": 70.0,
        },
        MEM,
        4,
        "94% of the shared-memory wavefronts",
    ),
    ({"local_loads": 150.0, "local_stores": 150.0}, MEM, 4, "30% of the instructions go to local memory"),
    ({"stalls": {"barrier": 0.4}}, REU, 3, "at barriers"),
    ({"stalls": {"long_scoreboard": 0.6, "barrier": 0.2}, "shared_static": 4096.0}, REU, 3, "global memory"),
    ({"l1_data_pct": 70.0}, REU, 2, "data path"),
    ({"fma_pipe_pct": 76.0}, TC, 2, "FMA pipe is 76 %"),
    ({"threads_per_instruction": 9.7}, CF, 4, "9.7 of 32 lanes"),
    ({"uniform_branches_pct": 60.0}, CF, 2, "60 % of the branches"),
    ({"stalls": {"no_instruction": 0.4}}, CF, 2, "for instructions"),
]


@pytest.mark.parametrize(("seen", "direction", "score", "quoted"), FIRING, ids=[case[3] for case in FIRING])
def test_a_sign_names_its_direction_and_quotes_its_value(
    launch: Launches, task: Tasks, seen: dict[str, Any], direction: Direction, score: int, quoted: str
) -> None:
    first = directions([launch(**seen)], task())[0]
    assert (first.direction, first.score) == (direction, score)
    assert quoted in " ".join(first.signs_for)


def test_a_launch_of_which_nothing_can_be_said_has_no_sign(launch: Launches, task: Tasks) -> None:
    assert signs(Facts(launch(), task())) == ()


def test_a_product_on_ordinary_pipes_asks_for_tensor_cores_only_where_they_are_legal(
    launch: Launches, task: Tasks
) -> None:
    busy = launch(sm_pct=90.0, fma_pipe_pct=88.0)
    legal = directions([busy], task(contraction_share=1.0, tensor_core_legal=True))[0]
    assert (legal.direction, legal.score) == (TC, 4)
    forbidden = next(d for d in directions([busy], task(contraction_share=1.0)) if d.direction is TC)
    assert forbidden.score == 2 and "no contraction" in forbidden.signs_against


def test_low_occupancy_is_no_sign_while_a_unit_is_busy(launch: Launches, task: Tasks) -> None:
    found = directions([launch(occupancy_pct=12.0, memory_pct=88.0)], task())
    parallelism = next(d for d in found if d.direction is PAR)
    assert parallelism.score == 0 and "a unit is busy" in parallelism.signs_against[0]


HOPPER: dict[str, Any] = {"occupancy_pct": 12.5, "waves": 1.0, "stalls": {"long_scoreboard": 0.7, "barrier": 0.1}}


@pytest.mark.parametrize("fed", [{"tma_loads": 4096.0}, {"wgmma_pct": 30.0}], ids=["TMA", "wgmma"])
def test_few_warps_are_no_defect_of_a_kernel_on_wgmma_or_tma(
    launch: Launches, task: Tasks, fed: dict[str, float]
) -> None:
    def parallelism(**seen: Any) -> DirectionSigns:
        return next(d for d in directions([launch(**seen)], task()) if d.direction is PAR)

    assert parallelism(**HOPPER).score == 4
    found = parallelism(**HOPPER, **fed)
    assert found.score == 0 and "as is meant with wgmma or TMA" in found.signs_against[0]
    assert parallelism(**HOPPER | {"waves": 0.2}, **fed).score == 4  # most SMs have no block at all


def test_the_waiting_and_the_accesses_beside_tma_are_weak_signs(launch: Launches, task: Tasks) -> None:
    def scores(**seen: Any) -> dict[Direction, int]:
        return {d.direction: d.score for d in directions([launch(**seen)], task())}

    side_path = HOPPER | {"global_sectors": 800.0}
    assert (scores(**side_path)[REU], scores(**side_path)[MEM]) == (2, 4)
    fed = scores(**side_path, tma_loads=4096.0)
    assert (fed[REU], fed[MEM]) == (1, 1)


def test_redundant_bytes_ask_for_fusion_but_not_when_half_used_sectors_are_the_cause(
    launch: Launches, task: Tasks
) -> None:
    twice = task(moved_bytes=2000.0)
    one, other = launch(dram_pct=85.0, share=0.5), launch(dram_pct=85.0, share=0.5)
    fused = directions([one, other], twice)[0]
    assert (fused.direction, fused.score) == (REU, 4) and "fuse the kernels" in fused.signs_for[0]
    scattered = launch(dram_pct=85.0, memory_pct=85.0, global_sectors=400.0)
    assert next(d for d in directions([scattered], twice) if d.direction is REU).score == 0


def test_an_excess_that_l2_could_hold_is_a_weak_sign(launch: Launches, task: Tasks) -> None:
    pair = [launch(dram_pct=85.0, share=0.5, l2_bytes=6e7) for _ in range(2)]
    reuse = next(d for d in directions(pair, task(moved_bytes=2000.0)) if d.direction is REU)
    assert reuse.score == 2 and "L2 could hold" in reuse.signs_for[0]


def test_at_the_floor_every_direction_is_0_whatever_else_is_seen(launch: Launches, task: Tasks) -> None:
    found = directions([launch(threads_per_instruction=3.0)], task(seconds=5.5e-4))
    assert {d.score for d in found} == {0}
    assert all("at 1.10 times the floor" in d.signs_against[0] for d in found)


def test_a_busy_dram_with_the_tasks_own_bytes_ends_the_search_too(launch: Launches, task: Tasks) -> None:
    found = directions([launch(dram_pct=88.0, memory_pct=88.0, occupancy_pct=20.0)], task())
    assert {d.score for d in found} == {0}


def test_a_kernel_with_little_of_the_time_does_not_rule_the_call(launch: Launches, task: Tasks) -> None:
    main, small = launch(share=0.95), launch(share=0.05, threads_per_instruction=2.0)
    control = next(d for d in directions([main, small], task()) if d.direction is CF)
    assert control.score == 2


def test_gaps_between_kernels_ask_for_fusion(launch: Launches, task: Tasks) -> None:
    three = [launch(seconds=1e-4, share=0.33) for _ in range(3)]
    first = directions(three, task(seconds=1e-3))[0]
    assert (first.direction, first.score) == (REU, 4) and "70% of a call is outside its 3 kernels" in first.signs_for[0]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.dictionaries(st.sampled_from(sorted(METRICS)), st.one_of(st.none(), st.floats(0, 1e12))))
def test_any_values_give_five_directions_with_scores_from_0_to_4(
    launch: Launches, task: Tasks, values: dict[str, float | None]
) -> None:
    values.pop("time", None)
    found = directions([launch(**values)], task())
    assert {d.direction for d in found} == set(Direction)
    assert all(0 <= d.score <= 4 for d in found)
    assert all(d.signs_for for d in found if d.score)


def test_nothing_is_known_of_a_launch_without_metrics(launch: Launches, task: Tasks) -> None:
    blank = launch(**dict.fromkeys(m.name for m in launch().metrics))
    found = directions([blank], task(moved_bytes=None, seconds=None))
    assert {d.score for d in found} == {0}
