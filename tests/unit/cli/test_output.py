"""Numbers, tables and reports as people see them."""

import pytest

from hiera_mcp.cli.output import duration, ratio, table
from hiera_mcp.cli.report import best_lines, candidate_lines, decision_lines, run_lines
from hiera_mcp.client.report import CandidateRow, DecisionRow, RunView
from hiera_mcp.model.evaluation import Interval


def row(name: str, status: str, **more: object) -> CandidateRow:
    base = {"candidate_id": name, "name": name, "round": 1, "space": "cpp", "status": status, "reason": "why so"}
    return CandidateRow.model_validate(base | more)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (2.5, "2.50 s"),
        (0.01234, "12.3 ms"),
        (0.000999, "999 µs"),
        (2.5e-6, "2.50 µs"),
        (3.2e-8, "32.0 ns"),
        (0.0, "0.00 ns"),
    ],
)
def test_a_time_has_a_fitting_unit(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_a_ratio_shows_its_interval() -> None:
    assert ratio(Interval(median=2.346, low=2.3, high=2.4)) == "2.35× [2.30, 2.40]"


def test_columns_are_aligned() -> None:
    assert table(("a", "b"), [("long cell", "x"), ("y", "z")]) == [
        "a          b",
        "─────────  ─",
        "long cell  x",
        "y          z",
    ]


def test_the_table_marks_the_best_and_explains_failures() -> None:
    lines = candidate_lines(
        [
            row("good", "passed", time_s=Interval(median=0.002, low=0.002, high=0.002), margin=0.0123, is_best=True),
            row("bad", "wrong_output", margin=6.5),
        ]
    )
    assert any(line.startswith("good *") and "2.00 ms" in line and "0.0123" in line for line in lines)
    assert any(line.startswith("bad") and "wrong_output" in line and "6.5" in line for line in lines)
    assert lines[-1].strip() == "bad: why so"
    assert not any("good: why so" in line for line in lines)


def test_a_decision_says_who_decided_and_what_was_recommended() -> None:
    decision = DecisionRow(
        decision_id="d1", round=2, kind="direction", choice="parallelism", decided_by="agent", reason="idle lanes",
        recommended="control_flow",
    )  # fmt: skip
    head, reason = decision_lines(decision)
    assert head == "Round 2 direction: parallelism  (decided by the agent; recommended was control_flow)"
    assert reason.strip() == "idle lanes"


def test_a_recorded_run_is_shown_round_by_round() -> None:
    decisions = [
        {
            "decision_id": f"d{n}",
            "round": n,
            "kind": "space",
            "choice": f"space{n}",
            "decided_by": "agent",
            "reason": "r",
        }
        for n in (1, 2)
    ]
    candidates = [row("first", "wrong_output"), row("second", "wrong_output", round=2)]
    run = RunView.model_validate(
        {
            "run_id": "r_1", "contract_id": "c_1", "task": "softmax", "target": "cpu", "state": "open", "round": 3,
            "trajectory_uri": "hiera://runs/r_1/trajectory", "database": "/data/hiera.db",
            "decisions": decisions, "candidates": [c.model_dump() for c in candidates],
        }
    )  # fmt: skip
    text = "\n".join(run_lines(run))
    places = [text.index(words) for words in ("space1", "first", "space2", "second", "Round 3: no candidate yet.")]
    assert places == sorted(places)
    assert text.endswith("No candidate passed.\nDatabase: /data/hiera.db")


def test_no_best_is_said() -> None:
    assert best_lines(None) == ["No candidate passed."]


def test_a_candidate_that_passed_and_touched_foreign_memory_is_told_with_its_reason() -> None:
    lines = candidate_lines(
        (row("good", "passed"), row("wild", "passed", reason="MEMORY ERROR, so it cannot be the best"))
    )
    assert [line.strip() for line in lines if "MEMORY ERROR" in line] == [
        "wild: MEMORY ERROR, so it cannot be the best"
    ]
    assert not any("good:" in line for line in lines)
