"""Long calls: waiting, progress, cancelling, coming back, and servers that end."""

import threading
import time
from functools import partial
from typing import Any

import anyio
import pytest
from mcp import MCPError

from hiera_mcp.errors import RequestError
from hiera_mcp.store import Store


def states_of_jobs(run_id: str, store: Store) -> list[str]:
    return [job.state for job in store.jobs(run_id)]


async def until(condition: Any) -> None:
    with anyio.fail_after(10):
        while not condition():
            await anyio.sleep(0.01)


async def test_a_call_that_does_not_wait_returns_a_job(bench: Any, mode: str) -> None:
    async with bench.session(mode) as call:
        run_id = await call.planned_run()
        answer = await call.evaluate(run_id, "hang", wait_s=0)
        assert answer["state"] in ("queued", "running")
        assert answer["results"] is None
        assert f"hiera_job(job_id='{answer['job_id']}')" in answer["next_step"]
        bench.executor.release.set()
        job = await call("hiera_job", job_id=answer["job_id"])
    assert job["state"] == "done"
    assert job["result"]["results"][0]["status"] == "passed"


async def test_the_status_shows_a_job_without_waiting(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        answer = await call.evaluate(run_id, "hang", wait_s=0)
        await until(lambda: bench.executor.started)
        job = await call("hiera_job", job_id=answer["job_id"], action="status", wait_s=300)
        status = await call("hiera_run_status", run_id=run_id)
        assert job["state"] == "running"
        assert "doing hang" in job["message"]
        assert status["open_jobs"][0]["job_id"] == answer["job_id"]
        assert answer["job_id"] in status["next_step"]


async def test_cancelling_a_job_stops_its_work(bench: Any, mode: str) -> None:
    async with bench.session(mode) as call:
        run_id = await call.planned_run()
        answer = await call.evaluate(run_id, "hang", wait_s=0)
        await until(lambda: bench.executor.started)
        job = await call("hiera_job", job_id=answer["job_id"], action="cancel")
        again = await call("hiera_job", job_id=answer["job_id"], action="cancel")
        assert bench.executor.stopped == ["hang"]
    assert job["state"] == again["state"] == "cancelled"


async def test_cancelling_a_wait_leaves_the_job_running(bench: Any, candidates: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        with anyio.move_on_after(0.5):
            await call.evaluate(run_id, "hang", wait_s=300)
        assert bench.executor.started == ["hang"]
        assert bench.executor.stopped == []
        status = await call("hiera_run_status", run_id=run_id)
        bench.executor.release.set()
        job = await call("hiera_job", job_id=status["open_jobs"][0]["job_id"])
    assert job["state"] == "done"


async def test_a_client_that_times_out_leaves_the_job_running(bench: Any, candidates: Any, mode: str) -> None:
    async with bench.session(mode) as call:
        run_id = await call.planned_run()
        arguments = {"run_id": run_id, "candidates": candidates("hang"), "wait_s": 300}
        with pytest.raises(MCPError):
            await call.client.call_tool("hiera_candidates_evaluate", arguments, read_timeout_seconds=0.5)
        assert bench.executor.stopped == []
        assert len((await call("hiera_run_status", run_id=run_id))["open_jobs"]) == 1


async def test_progress_is_reported_while_a_call_waits(bench: Any, candidates: Any, mode: str) -> None:
    seen: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, message))
        bench.executor.release.set()

    async with bench.session(mode) as call:
        run_id = await call.planned_run()
        arguments = {"run_id": run_id, "candidates": candidates("hang", "pass 1e-4")}
        await call.client.call_tool("hiera_candidates_evaluate", arguments, progress_callback=hear)
    assert any("c0" in (message or "") for _, message in seen)
    values = [value for value, _ in seen]
    assert values == sorted(set(values)), "each value is above the one before"


async def test_progress_comes_at_least_every_pulse_while_nothing_changes(
    bench: Any, candidates: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hiera_mcp.jobs.PULSE_S", 0.05)
    seen: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)
        if len(seen) == 10:
            bench.executor.release.set()

    async with bench.session() as call:
        run_id = await call.planned_run()
        arguments = {"run_id": run_id, "candidates": candidates("hang")}
        await call.client.call_tool("hiera_candidates_evaluate", arguments, progress_callback=hear)
    assert len(seen) >= 10


async def test_the_same_key_returns_the_earlier_job_and_does_nothing_twice(bench: Any, mode: str) -> None:
    async with bench.session(mode) as call:
        run_id = await call.planned_run(candidates_per_round=1)
        first = await call.evaluate(run_id, "hang", wait_s=0, idempotency_key="k1")
        await until(lambda: bench.executor.started)
        second = await call.evaluate(run_id, "hang", wait_s=0, idempotency_key="k1")
        bench.executor.release.set()
        third = await call.evaluate(run_id, "hang", idempotency_key="k1")
        fourth = await call.evaluate(run_id, "hang", idempotency_key="k1")
    assert first["job_id"] == second["job_id"] == third["job_id"] == fourth["job_id"]
    assert fourth["results"][0]["status"] == "passed"
    assert bench.executor.started == ["hang"]


async def test_a_key_of_another_run_is_another_key(bench: Any) -> None:
    async with bench.session() as call:
        one, two = await call.planned_run(), await call.planned_run()
        first = await call.evaluate(one, "pass 1e-4", idempotency_key="k")
        second = await call.evaluate(two, "pass 1e-4", idempotency_key="k")
    assert first["job_id"] != second["job_id"]


async def test_a_key_whose_work_failed_may_be_used_again(bench: Any, candidates: Any) -> None:
    async with bench.session() as call:
        run = await call("hiera_run_start", contract_id=call.contract_id)
        arguments = {"run_id": run["run_id"], "candidates": candidates("pass 1e-4"), "idempotency_key": "k"}
        assert "no space yet" in await call.error("hiera_candidates_evaluate", **arguments)
        await call.plan(run["run_id"])
        answer = await call("hiera_candidates_evaluate", **arguments)
    assert answer["results"][0]["status"] == "passed"


async def test_a_candidate_that_is_being_evaluated_is_not_started_twice(bench: Any, candidates: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        answer = await call.evaluate(run_id, "hang", wait_s=0)
        text = await call.error("hiera_candidates_evaluate", run_id=run_id, candidates=candidates("hang"))
    assert "is being evaluated already" in text
    assert answer["job_id"] in text


async def test_an_unknown_job_is_answered_with_the_known_ones(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        answer = await call.evaluate(run_id, "pass 1e-4")
        text = await call.error("hiera_job", job_id="j_none")
    assert answer["job_id"] in text


async def test_a_failed_job_is_shown_as_data(bench: Any, candidates: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        answer = await call.evaluate(run_id, "lost", wait_s=0)
        job = await call("hiera_job", job_id=answer["job_id"])
    assert job["state"] == "failed"
    assert job["error"] == "The judge was lost. Submit it again."
    assert run_id in job["next_step"]


async def test_a_fault_of_ours_in_a_job_ends_the_job_and_not_the_server(bench: Any, candidates: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        text = await call.error("hiera_candidates_evaluate", run_id=run_id, candidates=candidates("bug"))
        mixed = await call.evaluate(run_id, "bug", "pass 1e-4")
        assert "fault in the server (RuntimeError)" in text
        assert "secret" not in text
        assert [r["status"] for r in mixed["results"]] == ["not_run", "passed"]
        assert (await call("hiera_run_status", run_id=run_id))["state"] == "open"


async def test_a_server_that_stops_marks_its_jobs_interrupted_and_stops_their_work(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        answer = await call.evaluate(run_id, "hang", wait_s=0)
        await until(lambda: bench.executor.started)
    assert bench.executor.stopped == ["hang", "closed"], "jobs end before the executor does"
    async with bench.session() as call:
        job = await call("hiera_job", job_id=answer["job_id"])
        assert job["state"] == "interrupted"
        assert "Submit the work again" in job["error"]
        bench.executor.release.set()
        again = await call.evaluate(run_id, "hang")
        status = await call("hiera_run_status", run_id=run_id)
    assert again["results"][0]["status"] == "passed"
    assert len(status["candidates"]) == 1, "the interrupted candidate was taken up again"


async def test_results_are_kept_over_a_restart(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        answer = await call.evaluate(run_id, "pass 1e-4")
    async with bench.session() as call:
        job = await call("hiera_job", job_id=answer["job_id"])
        status = await call("hiera_run_status", run_id=run_id)
    assert job["result"]["results"] == answer["results"]
    assert status["best"]["candidate_id"] == answer["best"]["candidate_id"]


async def test_a_job_of_another_server_is_seen_and_waited_for_but_not_cancelled(bench: Any) -> None:
    async with bench.session() as one, bench.session() as other:
        run_id = await one.planned_run()
        answer = await one.evaluate(run_id, "hang", wait_s=0)
        text = await other.error("hiera_job", job_id=answer["job_id"], action="cancel")
        bench.executor.release.set()
        job = await other("hiera_job", job_id=answer["job_id"])
    assert "another server" in text
    assert job["state"] == "done"


async def test_two_jobs_submitted_at_once_both_get_their_result(bench: Any) -> None:
    answers: list[Any] = []
    async with bench.session() as call:
        run_id = await call.planned_run()

        async def one(prefix: str) -> None:
            candidates = [{"name": prefix, "sources": {"cpu_source.cpp": "pass 1e-4"}}]
            answers.append(await call("hiera_candidates_evaluate", run_id=run_id, candidates=candidates))

        async with anyio.create_task_group() as group:
            group.start_soon(one, "a")
            group.start_soon(one, "b")
    assert {a["results"][0]["name"] for a in answers} == {"a", "b"}


async def test_a_refused_request_leaves_no_open_job(bench: Any, candidates: Any) -> None:
    async with bench.session() as call:
        run = await call("hiera_run_start", contract_id=call.contract_id)
        await call.error("hiera_candidates_evaluate", run_id=run["run_id"], candidates=candidates("pass 1"))
        states: list[str] = await bench.deps.database(partial(states_of_jobs, run["run_id"]))
    assert states == ["failed"]


async def test_store_calls_run_off_the_event_loop(bench: Any) -> None:
    """A slow database does not stall the server."""
    ticks = 0
    async with bench.open() as deps:
        loop_thread = threading.get_ident()

        def slow(_: object) -> int:
            time.sleep(0.2)
            return threading.get_ident()

        async def tick() -> None:
            nonlocal ticks
            while True:
                await anyio.sleep(0.01)
                ticks += 1

        async with anyio.create_task_group() as group:
            group.start_soon(tick)
            assert await deps.database(slow) != loop_thread
            group.cancel_scope.cancel()
    assert ticks > 1


async def test_what_admission_refuses_is_raised_to_the_caller(bench: Any) -> None:
    def refuse(*_: object) -> Any:
        raise RequestError("no")

    async def work(*_: object) -> None: ...

    async with bench.open() as deps:
        with pytest.raises(RequestError, match="no"):
            await deps.jobs.submit("check", work, admit=refuse)
