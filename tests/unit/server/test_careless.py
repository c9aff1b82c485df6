"""Requests of a careless agent: each is answered with what was wrong and what to do, and nothing of it is half done."""

import sqlite3
from typing import Any

import anyio
import pytest

from hiera_mcp.errors import StoreError
from hiera_mcp.model.run import JobState
from hiera_mcp.store import Store


async def test_a_key_used_again_with_other_content_is_refused(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        await call.evaluate(run_id, "pass 1e-4", idempotency_key="k")
        other = [{"name": "c0", "sources": {"cpu_source.cpp": "pass 2e-4"}}]
        text = await call.error(
            "hiera_candidates_evaluate", run_id=run_id, candidates=other, idempotency_key="k", wait_s=5
        )
        status = await call("hiera_run_status", run_id=run_id)
    assert "The idempotency key was used for another submission" in text
    assert "use another key" in text
    assert len(status["candidates"]) == 1


@pytest.mark.parametrize("text", [" ", "\n\t\n"])
async def test_a_source_of_blanks_takes_no_place(bench: Any, text: str, candidates: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        error = await call.error("hiera_candidates_evaluate", run_id=run_id, candidates=candidates(text))
        status = await call("hiera_run_status", run_id=run_id)
    assert "Candidate `c0` has nothing in cpu_source.cpp." in error
    assert status["candidates"] == []


async def test_an_empty_parent_is_answered_with_leaving_it_out(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        child = {"name": "c", "sources": {"cpu_source.cpp": "pass 1e-4"}, "parent_id": ""}
        error = await call.error("hiera_candidates_evaluate", run_id=run_id, candidates=[child])
    assert "names the parent ''" in error
    assert "leave it out" in error


async def test_the_home_of_nobody_is_no_path(bench: Any) -> None:
    async with bench.session() as call:
        error = await call.error("hiera_contract_build", path="~nobody-of-that-name/a.py")
    assert "Pass the whole path" in error


async def test_a_reason_or_a_strategy_of_any_length_is_refused(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        assert "reason" in await call.error("hiera_plan_space", run_id=run_id, choice="cpp", reason="y" * 100_000)
        strategy = {"title": "t", "space": "cpp", "direction": "parallelism", "steps": ["y" * 100_000]}
        error = await call.error("hiera_plan_strategy", run_id=run_id, strategy=strategy, reason="r")
    assert "at most 16000 are taken" in error


async def test_a_run_of_many_decisions_shows_the_newest(bench: Any) -> None:
    async with bench.session() as call:
        run = await call("hiera_run_start", contract_id=call.contract_id)
        for n in range(40):
            await call("hiera_plan_space", run_id=run["run_id"], choice="cpp", reason=f"Decision {n}. " + "y" * 3000)
        status = await call("hiera_run_status", run_id=run["run_id"])
    assert status["earlier_decisions"] == 10
    assert status["decisions"][-1]["reason"].startswith("Decision 39.")
    assert len(str(status)) < 40_000


async def test_a_run_that_is_finished_takes_nothing_more(bench: Any, candidates: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        done = await call.evaluate(run_id, "pass 1e-4")
        first, second = await call("hiera_run_finish", run_id=run_id), await call("hiera_run_finish", run_id=run_id)
        refused = [
            await call.error("hiera_plan_space", run_id=run_id, choice="recommended"),
            await call.error("hiera_candidates_evaluate", run_id=run_id, candidates=candidates("pass 1e-4", "broken")),
        ]
        ended = await call("hiera_job", job_id=done["job_id"], action="cancel")
    assert first["files"] == second["files"]
    assert all("is finished" in text and "hiera_run_start" in text for text in refused)
    assert (ended["state"], ended["progress"]) == ("done", 1.0)


async def test_a_goal_that_is_reached_ends_the_run(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run(goal="make it 1.5x faster")
        slow = await call.evaluate(run_id, "pass 1.9e-4")
        fast = await call.evaluate(run_id, "pass 1e-4")
    assert "hiera_run_finish" not in slow["next_step"]
    assert fast["next_step"].startswith("The goal of 1.5× is reached")
    assert f'hiera_run_finish(run_id="{run_id}")' in fast["next_step"]


async def test_candidates_that_could_only_be_built_are_said_to_have_nothing_to_run_on(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        answer = await call.evaluate(run_id, "notrun")
    assert "nothing can run on this host" in answer["next_step"]


async def test_a_candidate_that_lost_its_evaluation_is_named_with_the_way_back(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        await call.evaluate(run_id, "pass 1e-4", "lost")
        status = await call("hiera_run_status", run_id=run_id)
    assert status["next_step"].startswith("No result yet for c1: hiera_candidates_evaluate(")
    assert "with the same names and sources" in status["next_step"]


async def test_the_work_of_a_server_that_died_meanwhile_is_seen_by_one_that_runs(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        other = await anyio.to_thread.run_sync(Store.open, bench.settings.database, bench.settings.blobs)
        job, _ = other.add_job("evaluate", run_id, {})
        other.start_job(job.id)
        running = await call("hiera_run_status", run_id=run_id)
        assert running["open_jobs"][0]["job_id"] == job.id
        other.close()
        status = await call("hiera_run_status", run_id=run_id)
        seen = await call("hiera_job", job_id=job.id, wait_s=300)
    assert status["open_jobs"] == []
    assert seen["state"] == "interrupted"


async def test_waiting_for_the_job_of_a_server_that_dies_ends_with_it(bench: Any) -> None:
    async with bench.session() as call:
        other = await anyio.to_thread.run_sync(Store.open, bench.settings.database, bench.settings.blobs)
        job, _ = other.add_job("check", None, {})
        seen: list[Any] = []

        async def wait() -> None:
            seen.append(await call("hiera_job", job_id=job.id, wait_s=300))

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.sleep(0.1)
            await anyio.to_thread.run_sync(other.close)
    assert seen[0]["state"] == "interrupted"


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """While it holds a word, no transaction commits."""
    full: list[str] = []
    write = Store.write

    def guarded(self: Store) -> Any:
        if full:
            raise StoreError(
                f"Cannot write {self.path}: database or disk is full.", todo="Free disk space, then repeat."
            )
        return write(self)

    monkeypatch.setattr(Store, "write", guarded)
    return full


async def test_work_whose_end_cannot_be_stored_ends_in_an_error_and_is_stored_later(
    bench: Any, full_disk: list[str], candidates: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hiera_mcp.jobs.RETRY_S", 0.05)
    async with bench.session() as call:
        run_id = await call.planned_run()
        started = await call.evaluate(run_id, "hang", "hang", wait_s=0)
        while len(bench.executor.started) < 2:
            await anyio.sleep(0.01)
        full_disk.append("full")
        bench.executor.release.set()
        seen = await call("hiera_job", job_id=started["job_id"], wait_s=300)
        assert seen["state"] == "failed"
        assert "disk is full" in seen["error"]
        assert "disk is full" in await call.error(
            "hiera_candidates_evaluate", run_id=run_id, candidates=candidates("pass 1e-4", prefix="d")
        )
        assert (await call("hiera_guide"))["topic"] == "loop"
        full_disk.clear()
        with anyio.fail_after(10):
            while rows(bench, "SELECT state FROM jobs ORDER BY rowid LIMIT 1") != [JobState.FAILED]:
                await anyio.sleep(0.01)
        again = await call.evaluate(run_id, "hang", "hang")
    assert [row["status"] for row in again["results"]] == ["passed", "passed"]


def rows(bench: Any, sql: str) -> list[str]:
    with sqlite3.connect(bench.settings.database) as connection:
        return [row[0] for row in connection.execute(sql)]
