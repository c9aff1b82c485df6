"""What bounds a call, and its place under the roofs."""

from collections.abc import Callable

import pytest

from hiera_mcp.model.contract import Contract
from hiera_mcp.model.evaluation import Clocks, Interval, Timing
from hiera_mcp.model.profile import Launch
from hiera_mcp.sandbox.profiling.bottleneck import bottleneck, roofline
from hiera_mcp.sandbox.profiling.facts import TaskFacts, moved, task_facts

Launches = Callable[..., Launch]
Tasks = Callable[..., TaskFacts]


@pytest.mark.parametrize(
    ("sm", "memory", "expected"),
    [(30, 85, "memory"), (85, 30, "compute"), (30, 30, "latency"), (None, 85, "unknown"), (70, 70, "memory")],
)
def test_the_busier_of_arithmetic_and_memory_bounds_a_kernel_from_60_per_cent_on(
    launch: Launches, task: Tasks, sm: float | None, memory: float, expected: str
) -> None:
    assert bottleneck([launch(sm_pct=sm, memory_pct=memory)], task()) == expected


def test_the_kernels_with_most_of_the_time_decide(launch: Launches, task: Tasks) -> None:
    calls = [launch(share=0.3, seconds=3e-4, sm_pct=90), launch(share=0.7, seconds=7e-4, memory_pct=90)]
    assert bottleneck(calls, task()) == "memory"


def test_a_call_that_is_mostly_gaps_or_of_tiny_kernels_is_bound_by_launches(launch: Launches, task: Tasks) -> None:
    assert bottleneck([launch(seconds=1e-4, memory_pct=90)], task(seconds=1e-3)) == "launch"
    assert bottleneck([launch(seconds=2e-6)], task(seconds=None)) == "launch"


def test_a_call_of_which_only_the_first_launches_were_profiled_is_not_judged_by_their_sum(
    contract: Contract, launch: Launches
) -> None:
    facts = task_facts(contract, None, [launch(), launch()], most=2)
    assert (facts.complete, facts.seconds, facts.moved_bytes) == (False, None, None)
    assert bottleneck([launch(seconds=1e-5, memory_pct=90)] * 2, facts) == "memory"


def test_without_launches_nothing_is_known(task: Tasks) -> None:
    assert bottleneck([], task()) == "unknown"


def test_the_place_under_the_roofs_comes_from_the_contract_and_the_time(contract: Contract, launch: Launches) -> None:
    place = roofline(contract, 2e-3, moved([launch(dram_read=3e9, dram_write=1e9)]))
    assert place is not None
    assert place.intensity == contract.features.flops / contract.features.compulsory_bytes
    assert place.achieved_flops * 2e-3 == pytest.approx(contract.features.flops)
    assert place.attainable_flops <= place.peak_flops
    assert place.moved_bytes == 4e9


def test_bytes_that_were_not_counted_are_null_with_a_reason(contract: Contract, launch: Launches) -> None:
    place = roofline(contract, 2e-3, moved([launch(dram_read=None)]))
    assert place is not None and place.moved_bytes is None and "not read" in place.moved_reason
    assert roofline(contract, None, None) is None


def test_the_floor_is_what_a_copy_takes_here_where_that_is_more(contract: Contract) -> None:
    slow = task_facts(contract, timed(copy_floor=5e-3), [], most=16)
    assert (slow.floor_seconds, slow.floor_is_the_contracts, slow.floor_ratio) == (5e-3, False, 2.0)
    fast = task_facts(contract, timed(copy_floor=1e-9), [], most=16)
    assert (fast.floor_seconds, fast.floor_is_the_contracts) == (contract.floor.seconds, True)


def timed(copy_floor: float) -> Timing:
    """10 ms per call."""
    at = Interval(median=1e-2, low=1e-2, high=1e-2)
    clocks = Clocks(claimed=1e-2, outside=1e-2, floor=copy_floor)
    return Timing(candidate=at, reference=at, speedup=at, pairs=10, cache="cold", clocks=clocks)
