"""What the store remembers of runs, and how memory of several hosts is merged."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_records import records
from sqlite_utils import Database

from hiera_mcp.errors import NotFoundError, RequestError
from hiera_mcp.model.contract import Contract, Operator
from hiera_mcp.model.evaluation import Build, Device, Evaluation, Interval, NotRun, Status
from hiera_mcp.model.memory import Memory, RoundRecord, newest
from hiera_mcp.model.plan import Decision
from hiera_mcp.model.run import Budget
from hiera_mcp.model.space import Direction, Space
from hiera_mcp.store import NewCandidate, Store
from hiera_mcp.store.migrations import migrations

Decide = Callable[..., Decision]
New = Callable[[str], NewCandidate]
Play = Callable[..., str]


def faster(passed: Evaluation, speedup: float) -> Evaluation:
    """The evaluation, with another speed-up."""
    assert passed.timing is not None
    around = Interval(median=speedup, low=speedup - 0.0625, high=speedup + 0.0625)
    return passed.model_copy(update={"timing": passed.timing.model_copy(update={"speedup": around})})


WRONG = Evaluation(status=Status.WRONG_OUTPUT, reason="margin 3.0")


@pytest.fixture
def play(contract: Contract, decide: Decide, new: New, passed: Evaluation) -> Play:
    """Plays a run in a store: per round a direction and what its candidates came to (a speed-up, a verdict, or None)."""

    def run(
        store: Store, *rounds: tuple[str | None, list[float | Evaluation | NotRun | None]], space: str = "cpp"
    ) -> str:
        store.put_contract(contract, {})
        run_id = store.start_run(contract.id, "", Budget(rounds=5)).id
        for direction, results in rounds:
            store.add_decision(run_id, decide("space", space))
            if direction:
                store.add_decision(run_id, decide("direction", direction))
            candidates = store.add_candidates(run_id, [new(f"{direction}{i}") for i in range(len(results))])
            for candidate, result in zip(candidates, results, strict=True):
                if result is not None:
                    outcome = faster(passed, result) if isinstance(result, float | int) else result
                    store.put_outcome(candidate.id, outcome)
        return run_id

    return run


def test_a_round_is_remembered_with_its_best_and_what_was_there_before(store: Store, play: Play) -> None:
    run_id = play(
        store, ("parallelism", [1.5, 2.0, WRONG]), ("control_flow", [WRONG]), ("memory_transactions", [3.0, 1.0])
    )
    first, second, third = store.remembered()
    assert [r.run_id for r in (first, second, third)] == [run_id] * 3
    assert (first.direction, first.candidates, first.passed, first.failures) == (
        Direction.PARALLELISM,
        3,
        2,
        {"wrong_output": 1},
    )
    assert first.best is not None and first.best.median == 2.0 and first.before is None
    assert second.best is None and second.before == first.best
    assert third.before == first.best and third.best is not None and third.best.median == 3.0
    assert {(r.device, r.space, r.bound) for r in (first, second, third)} == {("cpu", Space.CPP, "memory")}


def test_candidates_without_a_verdict_are_no_memory(store: Store, play: Play, build: Build) -> None:
    play(store, ("parallelism", [None, NotRun(reason="no device", build=build)]))
    assert store.remembered() == ()


def test_the_newest_verdict_counts(store: Store, play: Play, passed: Evaluation, build: Build) -> None:
    run_id = play(store, ("parallelism", [WRONG]))
    store.put_outcome(store.candidates(run_id)[0].id, faster(passed, 1.4))
    (record,) = store.remembered()
    assert record.failures == {} and record.best is not None and record.best.median == 1.4
    store.put_outcome(store.candidates(run_id)[0].id, NotRun(reason="no device", build=build))
    assert store.remembered() == ()


def test_what_went_on_after_it_was_read_is_read_again(
    store: Store, play: Play, open_store: Callable[[], Store]
) -> None:
    play(store, ("parallelism", [1.5]))
    before, other = store.remembered(), open_store()
    play(other, ("control_flow", [1.2]))
    other.import_memory(Memory(rounds=(before[0].model_copy(update={"origin": "o_2", "run_id": "r_2"}),)))
    assert len(store.remembered()) == 3
    assert store.remembered() == other.remembered() == open_store().remembered()


def test_a_runs_own_rounds_can_be_left_out(store: Store, play: Play) -> None:
    own = play(store, ("parallelism", [1.5]))
    other = play(store, ("control_flow", [1.2]))
    assert {r.run_id for r in store.remembered()} == {own, other}
    assert [r.run_id for r in store.remembered(without_run=own)] == [other]


def test_a_round_without_a_direction_is_remembered_for_its_space(store: Store, play: Play) -> None:
    play(store, (None, [1.5]))
    assert [(r.space, r.direction) for r in store.remembered()] == [(Space.CPP, None)]


def test_the_kind_of_operator_that_takes_most_time_is_the_rounds_kind(
    store: Store, contract: Contract, decide: Decide, new: New, passed: Evaluation
) -> None:
    shares = (("gemm", 0.4), ("elementwise", 0.35), ("elementwise", 0.25))
    operators = tuple(
        Operator.model_validate({"name": f"aten.{k}", "kind": k, "count": 1, "flops": 1, "bytes": 1, "share": s})
        for k, s in shares
    )
    features = contract.features.model_copy(update={"operators": operators})
    mixed = contract.model_copy(update={"features": features})
    store.put_contract(mixed, {})
    run_id = store.start_run(mixed.id, "", Budget()).id
    store.add_decision(run_id, decide("space", "cpp"))
    store.put_outcome(store.add_candidates(run_id, [new("a")])[0].id, passed)
    assert [r.operator_kind for r in store.remembered()] == ["elementwise"]


# --- moving between hosts ---------------------------------------------------------------------------------------------


@pytest.fixture
def other_store(tmp_path: Path) -> Any:
    store = Store.open(tmp_path / "other" / "hiera.db", tmp_path / "other" / "blobs")
    yield store
    store.close()


def test_what_one_host_exports_another_remembers(store: Store, other_store: Store, play: Play) -> None:
    run_id = play(store, ("parallelism", [1.5]))
    store.add_lesson("Threads pay", "Rows over threads.", [store.candidates(run_id)[0].id])
    memory = store.export_memory()
    done = other_store.import_memory(memory)
    assert (done.rounds, done.lessons, done.known) == (1, 1, 0)
    assert other_store.export_memory() == memory
    assert [lesson.title for lesson in other_store.lessons("threads")] == ["Threads pay"]


def test_memory_that_comes_back_is_not_counted_twice(store: Store, other_store: Store, play: Play) -> None:
    play(store, ("parallelism", [1.5]))
    play(other_store, ("control_flow", [1.2]))
    before = store.remembered()
    other_store.import_memory(store.export_memory())
    done = store.import_memory(other_store.export_memory())
    assert (done.rounds, done.known) == (1, 1)
    assert len(store.remembered()) == len(before) + 1


def test_a_run_that_went_on_replaces_what_was_known_of_it(
    store: Store, other_store: Store, play: Play, passed: Evaluation
) -> None:
    run_id = play(store, ("parallelism", [1.5, None]))
    early = store.export_memory()
    store.put_outcome(store.candidates(run_id)[1].id, faster(passed, 2.5))
    late = store.export_memory()
    for memory in (late, early):
        other_store.import_memory(memory)
    assert other_store.remembered() == late.rounds


def test_no_source_of_a_candidate_is_exported(store: Store, play: Play) -> None:
    run_id = play(store, ("parallelism", [1.5]))
    candidate = store.candidates(run_id)[0]
    store.add_lesson("Threads pay", "Rows over threads.", [candidate.id])
    text = store.export_memory().model_dump_json()
    assert candidate.sources["cpu_source.cpp"] not in text


def test_a_lesson_that_was_edited_in_the_file_is_refused_and_nothing_is_imported(
    store: Store, other_store: Store, play: Play
) -> None:
    run_id = play(store, ("parallelism", [1.5]))
    store.add_lesson("Threads pay", "Rows over threads.", [store.candidates(run_id)[0].id])
    memory = store.export_memory()
    other_store.import_memory(Memory(lessons=memory.lessons))
    edited = memory.lessons[0].model_copy(update={"text": "Something else."})
    with pytest.raises(RequestError, match="differs"):
        other_store.import_memory(Memory(rounds=memory.rounds, lessons=(edited,)))
    assert other_store.remembered() == ()


@settings(max_examples=10, deadline=None)
@given(st.lists(st.lists(records(), max_size=5), min_size=2, max_size=3), st.randoms(use_true_random=False))
def test_files_may_be_imported_in_any_order_and_any_number_of_times(files: list[list[RoundRecord]], draw: Any) -> None:
    memories = [Memory(rounds=tuple(rounds)) for rounds in files]
    again = draw.sample([*memories, *memories], 2 * len(memories))
    assert imported(memories) == imported(again)


def imported(memories: Sequence[Memory]) -> tuple[RoundRecord, ...]:
    """What a new store remembers after imports in this order."""
    with TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "hiera.db", Path(folder) / "blobs")
        try:
            for memory in memories:
                store.import_memory(memory)
            return store.remembered()
        finally:
            store.close()


@settings(max_examples=40)
@given(st.lists(records(), max_size=6), st.lists(records(), max_size=6), st.lists(records(), max_size=6))
def test_merging_is_idempotent_commutative_and_associative(
    a: list[RoundRecord], b: list[RoundRecord], c: list[RoundRecord]
) -> None:
    assert newest([*newest(a), *newest(a)]) == newest(a)
    assert newest([*a, *b]) == newest([*b, *a])
    assert newest([*newest([*a, *b]), *c]) == newest([*a, *newest([*b, *c])])


def test_a_gpu_is_remembered_by_its_name(
    store: Store, contract: Contract, decide: Decide, new: New, passed: Evaluation
) -> None:
    on_gpu = contract.model_copy(update={"target": "cuda:sm_90a"})
    store.put_contract(on_gpu, {})
    run_id = store.start_run(on_gpu.id, "", Budget()).id
    store.add_decision(run_id, decide("space", "cuda"))
    device = Device(name="NVIDIA H200", target="cuda:sm_90a", isolation="bubblewrap")
    first, second = store.add_candidates(run_id, [new("a"), new("b")])
    store.put_outcome(first.id, WRONG)
    store.put_outcome(second.id, passed.model_copy(update={"device": device}))
    assert [r.device for r in store.remembered()] == ["NVIDIA H200"]


# --- lessons ----------------------------------------------------------------------------------------------------------


def test_a_lesson_keeps_what_its_candidates_showed(store: Store, play: Play) -> None:
    run_id = play(store, ("parallelism", [1.5, WRONG]))
    ids = [c.id for c in store.candidates(run_id)]
    lesson = store.add_lesson("t", "x", [*ids, ids[0]], Direction.PARALLELISM, Space.CPP)
    assert lesson.candidate_ids == tuple(ids)
    good, bad = lesson.proof
    assert (good.status, good.task, good.direction) == (Status.PASSED, "relu", Direction.PARALLELISM)
    assert good.speedup is not None and good.speedup.median == 1.5
    assert (bad.status, bad.reason, bad.speedup) == (Status.WRONG_OUTPUT, "margin 3.0", None)
    assert store.lessons() == (lesson,)


def test_a_lesson_shows_the_verdict_of_its_time(store: Store, play: Play, passed: Evaluation) -> None:
    run_id = play(store, ("parallelism", [1.5]))
    candidate = store.candidates(run_id)[0]
    lesson = store.add_lesson("t", "x", [candidate.id])
    store.put_outcome(candidate.id, faster(passed, 9.0))
    assert store.lessons() == (lesson,)


@pytest.mark.parametrize(
    "about", [{"direction": Direction.CONTROL_FLOW}, {"space": Space.CPP_LIBRARIES}], ids=["direction", "space"]
)
def test_a_lesson_about_what_none_of_its_candidates_tried_is_refused(
    store: Store, play: Play, about: dict[str, Any]
) -> None:
    run_id = play(store, ("parallelism", [1.5]))
    with pytest.raises(RequestError, match="None of the candidates was tried in the"):
        store.add_lesson("t", "x", [store.candidates(run_id)[0].id], **about)


def test_a_lesson_on_an_evaluation_that_does_not_exist_is_refused(store: Store) -> None:
    with pytest.raises(NotFoundError):
        store.add_lesson("t", "x", ["k_none"])


def test_filters_do_not_hide_lessons_behind_the_limit(store: Store, play: Play) -> None:
    run_id = play(store, ("parallelism", [1.5]), ("control_flow", [2.0]))
    wide, narrow = (c.id for c in store.candidates(run_id))
    wanted = store.add_lesson("threads", "x", [wide], Direction.PARALLELISM)
    for n in range(5):
        store.add_lesson(f"threads {n}", "x", [narrow], Direction.CONTROL_FLOW)
    assert store.lessons("threads", 1, Direction.PARALLELISM) == (wanted,)
    assert store.lessons("", 1, Direction.PARALLELISM) == (wanted,)


def test_an_old_database_learns_what_its_contracts_and_lessons_say(
    tmp_path: Path, open_store: Callable[[], Store], play: Play
) -> None:
    """The migration: kinds of operators of contracts, proofs of lessons."""
    store = open_store()
    run_id = play(store, ("parallelism", [1.5]))
    lesson = store.add_lesson("t", "x", [store.candidates(run_id)[0].id])
    rounds = store.remembered()
    connection = sqlite3.connect(tmp_path / "hiera.db")
    for statement in (
        *(f"ALTER TABLE contracts DROP COLUMN {c}" for c in ("operator_kind", "floor_bound")),
        *(f"ALTER TABLE lessons DROP COLUMN {c}" for c in ("origin", "proof")),
        "DROP TABLE origin",
        "DROP TABLE rounds_imported",
        "DELETE FROM _sqlite_migrations WHERE name = 'm005_memory'",
    ):
        connection.execute(statement)
    connection.commit()
    migrations.apply(Database(connection))
    connection.commit()
    connection.close()
    again = open_store()
    fresh = {"origin": again.origin}
    assert again.lessons() == (lesson.model_copy(update=fresh),)
    assert again.remembered() == tuple(r.model_copy(update=fresh) for r in rounds)


def test_a_record_says_what_it_can_only_mean() -> None:
    plain: dict[str, Any] = {
        "origin": "o",
        "run_id": "r",
        "round": 1,
        "task_id": "t",
        "operator_kind": "gemm",
        "bound": "memory",
        "device": "cpu",
        "space": "cpp",
        "candidates": 2,
        "failures": {"crash": 2},
    }
    assert RoundRecord.model_validate(plain).passed == 0
    speedup = {"median": 2, "low": 1, "high": 3}
    for wrong in (
        {"best": speedup},
        {"failures": {"crash": 1}},
        {"failures": {"crash": 3}},
        {"failures": {"passed": 2}},
        {"device": "NVIDIA H200"},
        {"space": "cuda"},
        {"before": {"median": 2, "low": 1, "high": json.loads("Infinity")}},
    ):
        with pytest.raises(ValueError):
            RoundRecord.model_validate(plain | wrong)
