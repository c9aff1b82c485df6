"""What accounts and counters of a processor say: metrics with reasons, and signs only where something is known."""

from typing import Any

import pytest

from hiera_mcp.model.contract import Contract
from hiera_mcp.model.profile import DirectionSigns, Profile
from hiera_mcp.model.space import Direction
from hiera_mcp.model.work import HostCounts
from hiera_mcp.sandbox.profiling.host import directions, metrics, threads_used, with_host_counts

REFUSED = "the processor offers no performance counters here, as in most virtual machines"
READ = {
    "cycles": 1e9,
    "instructions": 2e9,
    "branches": 1e8,
    "branch_misses": 1e5,
    "l1_read_misses": 1e7,
    "llc_read_misses": 1e5,
    "dtlb_read_misses": 1e4,
}


def counts(**changes: Any) -> HostCounts:
    """A call of 100 ms that keeps 3.9 of 4 processors busy; no counters."""
    quiet: dict[str, Any] = {"seconds": 0.1, "processors": 4, "user_seconds": 0.38, "system_seconds": 0.01}
    quiet |= {"page_faults": 3, "waits": 2, "preemptions": 1, "refused": REFUSED}
    return HostCounts.model_validate(quiet | changes)


def counted(**changes: Any) -> HostCounts:
    """The same with counters of which nothing bad can be said."""
    return counts(**(READ | {"refused": ""} | changes))


def signs_of(found: HostCounts, contract: Contract, direction: Direction) -> DirectionSigns | None:
    return next((d for d in directions(found, contract) if d.direction is direction), None)


@pytest.mark.parametrize(("user", "score"), [(0.39, 0), (0.3, 2), (0.2, 3), (0.1, 4)])
def test_processors_that_do_nothing_speak_for_parallelism(contract: Contract, user: float, score: int):
    found = signs_of(counts(user_seconds=user, system_seconds=0.0), contract, Direction.PARALLELISM)
    assert found is not None and found.score == score
    assert f"{user / 0.1:.1f} of 4 processors are busy" in (*found.signs_for, *found.signs_against)


def test_one_processor_says_nothing_of_parallelism(contract: Contract):
    assert signs_of(counts(processors=1), contract, Direction.PARALLELISM) is None


def test_memory_allocated_in_each_call_speaks_for_reuse(contract: Contract):
    pages = contract.features.compulsory_bytes // 4096
    found = signs_of(counts(page_faults=pages), contract, Direction.REUSE_PIPELINING)
    assert found is not None and found.score == 3 and "page faults" in found.signs_for[0]


@pytest.mark.parametrize(
    ("changes", "direction", "score"),
    [
        ({"branch_misses": 6e6}, Direction.CONTROL_FLOW, 3),
        ({"branch_misses": 3e6}, Direction.CONTROL_FLOW, 2),
        ({"branch_misses": 1e5}, Direction.CONTROL_FLOW, 0),
        ({"dtlb_read_misses": 2e7}, Direction.MEMORY_TRANSACTIONS, 2),
        ({"llc_read_misses": 1e8}, Direction.REUSE_PIPELINING, 4),
        ({"llc_read_misses": 1e5}, Direction.REUSE_PIPELINING, 0),
    ],
)
def test_counters_speak_for_their_direction(
    contract: Contract, changes: dict[str, float], direction: Direction, score: int
):
    found = signs_of(counted(**changes), contract, direction)
    assert found is not None and found.score == score
    assert bool(found.signs_for) == (score > 0)


def test_without_counters_only_what_accounts_know_is_judged(contract: Contract):
    assert {d.direction for d in directions(counts(), contract)} == {Direction.PARALLELISM}


def test_a_counter_that_was_not_read_is_null_with_the_reason():
    by_name = {m.name: m for m in metrics(counts())}
    assert by_name["cycles"].value is None and by_name["cycles"].reason == REFUSED
    assert by_name["instructions_per_cycle"].value is None and by_name["threads_used"].value == pytest.approx(3.9)
    assert {m.name: m.value for m in metrics(counted())}["instructions_per_cycle"] == 2.0


def test_a_call_too_short_to_be_timed_divides_by_nothing(contract: Contract):
    assert threads_used(counts(seconds=0.0)) == 0.0
    assert signs_of(counts(seconds=0.0), contract, Direction.PARALLELISM) is None


@pytest.mark.parametrize(("ratio", "judged"), [(1.05, False), (3.0, True)])
def test_at_the_floor_no_direction_is_scored(contract: Contract, ratio: float, judged: bool):
    bare = Profile(bottleneck="latency", summary="Slow.", metrics=(), floor_ratio=ratio)
    profile = with_host_counts(bare, contract, counts(user_seconds=0.05))
    assert bool(profile.directions) == judged
    assert "0.6 of 4 processors busy" in profile.summary and REFUSED in profile.counters
