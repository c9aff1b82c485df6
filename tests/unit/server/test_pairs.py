"""Candidates that are close meet in one session, and what it says is stored and shown."""

from typing import Any

from hiera_mcp.errors import SandboxError
from hiera_mcp.model.work import PairReport


async def child(call: Any, run_id: str, parent: str, seconds: str) -> dict[str, Any]:
    one = {"name": f"after_{seconds}", "sources": {"cpu_source.cpp": f"pass {seconds}"}, "parent_id": parent}
    return await call("hiera_candidates_evaluate", run_id=run_id, candidates=[one])


async def test_a_close_child_is_timed_together_with_its_parent(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        parent = (await call.evaluate(run_id, "pass 1e-4"))["results"][0]["candidate_id"]
        result = await child(call, run_id, parent, "0.98e-4")
    row = result["results"][0]
    assert "compare 9.8e-05 with 0.0001" in bench.executor.started
    assert row["versus_parent"]["verdict"] == "faster"  # two evaluations, each known to 1 %, would not tell
    assert "one session" in row["versus_parent"]["basis"]
    assert result["best"]["candidate_id"] == row["candidate_id"]


async def test_what_is_clear_needs_no_session(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        parent = (await call.evaluate(run_id, "pass 1e-4"))["results"][0]["candidate_id"]
        row = (await child(call, run_id, parent, "0.5e-4"))["results"][0]
    assert not [s for s in bench.executor.started if s.startswith("compare")]
    assert row["versus_parent"]["verdict"] == "faster"


async def test_without_a_difference_the_earlier_candidate_stays_the_best(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        parent = (await call.evaluate(run_id, "pass 1e-4"))["results"][0]["candidate_id"]
        result = await child(call, run_id, parent, "0.9999e-4")
        state = await call("hiera_run_status", run_id=run_id)
    assert result["results"][0]["versus_parent"]["verdict"] == "no_difference"
    assert result["best"] is None or result["best"]["candidate_id"] == parent
    assert state["best"]["candidate_id"] == parent


async def test_a_session_that_fails_is_told_and_takes_no_verdict_away(bench: Any, monkeypatch: Any) -> None:
    reports = [PairReport(reason="the other candidate: the runner ended"), SandboxError("The judge was lost.")]

    async def compare(request: Any, notify: Any) -> PairReport:
        found = reports.pop(0)
        if isinstance(found, PairReport):
            return found
        raise found

    monkeypatch.setattr(bench.executor, "compare", compare)
    async with bench.session() as call:
        run_id = await call.planned_run()
        parent = (await call.evaluate(run_id, "pass 1e-4"))["results"][0]["candidate_id"]
        first = (await child(call, run_id, parent, "1.01e-4"))["results"][0]
        second = (await child(call, run_id, parent, "1.02e-4"))["results"][0]
    assert [first["status"], second["status"]] == ["passed", "passed"]
    assert "no session of both: the other candidate: the runner ended" in first["versus_parent"]["basis"]
    assert "no session of both: The judge was lost." in second["versus_parent"]["basis"]
