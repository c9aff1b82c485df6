"""NVIDIA's findings: read without their markup, and overruled where the evidence says so."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.model.profile import Launch
from hiera_mcp.sandbox.profiling.facts import Facts, TaskFacts
from hiera_mcp.sandbox.profiling.raw import RawRule
from hiera_mcp.sandbox.profiling.rules import MOST_CHARACTERS, hints, plain, why_not

Launches = Callable[..., Launch]
Tasks = Callable[..., TaskFacts]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("See @url:the Guide:https://docs.nvidia.com/x/index.html#occupancy@ for more.", "See the Guide for more."),
        ("See the Guide (https://docs.nvidia.com/x/index.html#occupancy) for more.", "See the Guide for more."),
        ("Look at @section:LaunchStats:Launch Statistics@ first.", "Look at Launch Statistics first."),
        ("Start at @source:kernel.cu:12:line 12@ or @sass:140:this one@.", "Start at line 12 or this one."),
    ],
)
def test_a_message_is_the_same_from_a_report_and_from_what_ncu_prints(message: str, expected: str) -> None:
    assert plain(message) == expected


@given(st.text(max_size=200))
def test_no_message_upsets_the_reader(message: str) -> None:
    plain(message)


def test_only_advice_is_kept_greatest_gain_first_and_cut() -> None:
    found = hints(
        (
            RawRule("SOLBottleneck", "All is well.", "ok"),
            RawRule("CPIStall", "Small.", "optimization", 5.04, "kernel"),
            RawRule("Occupancy", "x" * 1000, "warning"),
            RawRule("UncoalescedGlobalAccess", "Great.", "optimization", 80.0, "kernel"),
        )
    )
    assert [hint.rule for hint in found] == ["UncoalescedGlobalAccess", "CPIStall", "Occupancy"]
    assert found[1].gain_percent == 5.0 and len(found[2].message) == MOST_CHARACTERS


CASES: list[tuple[str, dict[str, Any], str]] = [
    ("MemoryL2Compression", {}, "compressible"),
    ("TheoreticalOccupancy", {"memory_pct": 90.0}, "a unit is busy"),
    ("IssueSlotUtilization", {"wgmma_pct": 40.0, "waves": 1.0}, "persistent"),
    ("UncoalescedGlobalAccess", {"tma_loads": 1000.0}, "TMA"),
    ("HighPipeUtilization", {"memory_pct": 90.0}, "memory bounds it"),
    ("TheoreticalOccupancy", {}, ""),
    ("CPIStall", {}, ""),
    ("UncoalescedGlobalAccess", {}, ""),
]


@pytest.mark.parametrize(("rule", "seen", "said"), CASES)
def test_a_rule_is_overruled_where_the_evidence_says_so(
    launch: Launches, task: Tasks, rule: str, seen: dict[str, Any], said: str
) -> None:
    why = why_not(rule, Facts(launch(**seen), task()), stop="")
    assert (said in why) if said else why == ""


def test_where_nothing_is_left_to_tune_no_rule_counts(launch: Launches, task: Tasks) -> None:
    assert why_not("CPIStall", Facts(launch(), task()), "at the floor") == "at the floor"
