"""What is put into the store comes out again, in order, and rounds follow their rule."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from hiera_mcp.errors import NotFoundError, RequestError
from hiera_mcp.model.contract import Contract
from hiera_mcp.model.evaluation import Build, Evaluation, NotRun
from hiera_mcp.model.plan import Decision
from hiera_mcp.model.run import Budget, Run
from hiera_mcp.store import NewCandidate, Store

Decide = Callable[..., Decision]
New = Callable[[str], NewCandidate]


@pytest.fixture
def run(store: Store, contract: Contract) -> Run:
    store.put_contract(contract, {"contract.h": "#pragma once"})
    return store.start_run(contract.id, "fast", Budget(rounds=2, candidates_per_round=2))


def test_a_contract_comes_back_equal_with_its_files(store: Store, contract: Contract) -> None:
    store.put_contract(contract, {"contract.h": "é"})
    store.put_contract(contract, {"contract.h": "é"})
    assert store.contract(contract.id) == contract
    assert store.contract_files(contract.id) == {"contract.h": "é"}
    assert [c.id for c in store.contracts()] == [contract.id]


def test_a_floor_measured_on_a_busy_host_gives_way_to_a_lower_one_and_to_no_higher_one(
    store: Store, contract: Contract
) -> None:
    def measured(seconds: float) -> Contract:
        return contract.model_copy(update={"floor": contract.floor.model_copy(update={"seconds": seconds})})

    for seconds in (7e-3, 1e-3, 5e-3):
        store.put_contract(measured(seconds), {})
    assert store.contract(contract.id).floor.seconds == 1e-3


def test_an_unknown_id_is_refused_with_the_ids_that_exist(store: Store, run: Run) -> None:
    with pytest.raises(NotFoundError, match=run.id):
        store.run("r_nothing")


def test_a_run_needs_an_existing_contract(store: Store) -> None:
    with pytest.raises(NotFoundError, match="There is no contract yet"):
        store.start_run("c_none", "", Budget())


def test_candidates_take_the_space_and_direction_decided_before(
    store: Store, run: Run, decide: Decide, new: New
) -> None:
    store.add_decision(run.id, decide("space", "cpp"))
    store.add_decision(run.id, decide("direction", "parallelism"))
    (candidate,) = store.add_candidates(run.id, [new("a")])
    assert (candidate.space, candidate.direction, candidate.round) == ("cpp", "parallelism", 1)
    assert store.candidate(candidate.id).sources == {"cpu_source.cpp": "// a"}


def test_candidates_without_a_space_are_refused(store: Store, run: Run, new: New) -> None:
    with pytest.raises(RequestError, match="hiera_plan_space"):
        store.add_candidates(run.id, [new("a")])


def test_a_round_takes_no_more_candidates_than_its_budget(store: Store, run: Run, decide: Decide, new: New) -> None:
    store.add_decision(run.id, decide())
    store.add_candidates(run.id, [new("a")])
    with pytest.raises(RequestError, match="1 of 2 places left, not 2"):
        store.add_candidates(run.id, [new("b"), new("c")])
    assert [c.name for c in store.candidates(run.id)] == ["a"]


def test_the_first_decision_after_candidates_opens_the_next_round(
    store: Store, run: Run, decide: Decide, new: New
) -> None:
    assert store.add_decision(run.id, decide()).round == 1
    assert store.add_decision(run.id, decide("direction", "parallelism")).round == 1
    store.add_candidates(run.id, [new("a")])
    assert store.add_decision(run.id, decide("direction", "control_flow")).round == 2
    assert store.add_decision(run.id, decide()).round == 2
    assert store.run(run.id).round == 2


def test_no_round_opens_beyond_the_budget(store: Store, run: Run, decide: Decide, new: New) -> None:
    for _ in range(2):
        store.add_decision(run.id, decide())
        store.add_candidates(run.id, [new("a")])
    with pytest.raises(RequestError, match=r"spent its 2 rounds.*hiera_run_finish"):
        store.add_decision(run.id, decide())
    assert store.run(run.id).round == 2


def test_a_finished_run_takes_neither_decisions_nor_candidates(
    store: Store, run: Run, decide: Decide, new: New
) -> None:
    store.add_decision(run.id, decide())
    assert store.finish_run(run.id).state == "finished"
    assert store.finish_run(run.id).state == "finished"
    with pytest.raises(RequestError, match="is finished"):
        store.add_candidates(run.id, [new("a")])
    with pytest.raises(RequestError, match="is finished"):
        store.add_decision(run.id, decide())


def test_the_newest_outcome_of_a_candidate_counts(
    store: Store, run: Run, decide: Decide, new: New, passed: Evaluation, build: Build
) -> None:
    store.add_decision(run.id, decide())
    (candidate,) = store.add_candidates(run.id, [new("a")])
    assert store.outcome(candidate.id) is None
    store.put_outcome(candidate.id, NotRun(reason="no GPU", build=build))
    assert store.outcome(candidate.id) == NotRun(reason="no GPU", build=build)
    store.put_outcome(candidate.id, passed)
    assert store.outcome(candidate.id) == passed
    assert store.outcomes(run.id) == {candidate.id: passed}


def test_times_and_margins_are_columns_that_sqlite_alone_can_read(
    store: Store, run: Run, decide: Decide, new: New, passed: Evaluation, tmp_path: Path
) -> None:
    store.add_decision(run.id, decide())
    (candidate,) = store.add_candidates(run.id, [new("a")])
    store.put_outcome(candidate.id, passed)
    with sqlite3.connect(tmp_path / "hiera.db") as db:
        row = db.execute("SELECT status, candidate_s, speedup, speedup_low, margin FROM evaluations").fetchone()
    assert row == ("passed", 1e-3, 2.0, 1.8, 0.2)


def test_every_step_is_an_event_and_events_never_change(store: Store, run: Run, decide: Decide, new: New) -> None:
    store.add_decision(run.id, decide())
    store.add_candidates(run.id, [new("a")])
    assert [e.kind for e in store.events(run.id)] == ["run_started", "decided", "candidate_submitted"]
    first = store.events(run.id)[0]
    assert [e.n for e in store.events(run.id, after=first.n)] == [first.n + 1, first.n + 2]
    for statement in ("DELETE FROM events", "UPDATE events SET kind = 'x'"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"), store.write() as tx:
            tx.execute(statement)


def test_a_parent_must_exist(store: Store, run: Run, decide: Decide) -> None:
    store.add_decision(run.id, decide())
    orphan = NewCandidate(name="a", sources={"cpu_source.cpp": ""}, parent_id="k_none")
    with pytest.raises(NotFoundError, match="candidate"):
        store.add_candidates(run.id, [orphan])


def test_a_lesson_needs_candidates_that_were_evaluated(
    store: Store, run: Run, decide: Decide, new: New, passed: Evaluation
) -> None:
    store.add_decision(run.id, decide())
    (candidate,) = store.add_candidates(run.id, [new("a")])
    with pytest.raises(RequestError, match="needs proof"):
        store.add_lesson("t", "x", [])
    with pytest.raises(RequestError, match="never evaluated"):
        store.add_lesson("t", "x", [candidate.id])
    store.put_outcome(candidate.id, passed)
    lesson = store.add_lesson("float4 loads", "cp.async helped on sm_80+", [candidate.id])
    assert store.lessons() == (lesson,)


@pytest.mark.parametrize("query", ["cp.async", "sm_80+", '"', "***", '"cp', "a AND", "helped -", "NEAR(", "*"])
def test_a_search_for_lessons_takes_any_text(
    store: Store, run: Run, decide: Decide, new: New, passed: Evaluation, query: str
) -> None:
    store.add_decision(run.id, decide())
    (candidate,) = store.add_candidates(run.id, [new("a")])
    store.put_outcome(candidate.id, passed)
    lesson = store.add_lesson("t", "cp.async helped on sm_80+", [candidate.id])
    found = store.lessons(query)
    assert found in ((), (lesson,))
    if query in ("cp.async", "sm_80+"):
        assert found == (lesson,)


def test_an_evaluation_row_keeps_its_log_as_a_file_of_its_own(
    store: Store, run: Run, decide: Decide, new: New, passed: Evaluation, tmp_path: Path
) -> None:
    store.add_decision(run.id, decide())
    (candidate,) = store.add_candidates(run.id, [new("a")])
    store.put_outcome(candidate.id, passed)
    with sqlite3.connect(tmp_path / "hiera.db") as db:
        text, sha = db.execute("SELECT evaluation, log_sha256 FROM evaluations").fetchone()
    assert json.loads(text)["log"] == ""
    assert store.blob(sha) == b"printed by the candidate"
