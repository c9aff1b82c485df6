"""Candidates: verdicts, refusals, failures of the sandbox, the best and parents."""

from typing import Any

import pytest


async def test_each_candidate_gets_its_own_verdict_in_the_order_of_submission(bench: Any, mode: str) -> None:
    async with bench.session(mode) as call:
        run_id = await call.planned_run()
        answer = await call.evaluate(run_id, "broken", "pass 1e-4", "outside", "pass 5e-5", "notrun")
    assert answer["state"] == "done"
    rows = answer["results"]
    assert [r["status"] for r in rows] == ["compile_error", "passed", "invalid_space", "passed", "not_run"]
    assert rows[0]["diagnostics"][0]["text"] == "expected ';'"
    assert rows[2]["space_findings"][0]["smallest_space"] == "cpp_libraries"
    assert rows[1]["margin"] == 0.25
    assert rows[1]["floor_ratio"] == pytest.approx(100)
    assert [r["speedup"] is None for r in rows] == [True, False, True, False, True]
    assert answer["best"]["name"] == "c3"
    assert [r["is_best"] for r in rows] == [False, False, False, True, False]


async def test_a_failure_of_the_sandbox_is_no_verdict_and_loses_no_other_candidate(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        answer = await call.evaluate(run_id, "lost", "pass 1e-4")
        lost, kept = answer["results"]
        status = await call("hiera_run_status", run_id=run_id)
    assert lost["status"] == "not_run"
    assert "The judge was lost." in lost["reason"]
    assert "Submit the same name and sources again" in lost["reason"]
    assert kept["status"] == "passed"
    assert status["candidates"][0]["reason"] == lost["reason"], "the reason outlives the answer"


async def test_when_the_sandbox_fails_on_all_the_call_fails_with_its_error(bench: Any, candidates: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        text = await call.error("hiera_candidates_evaluate", run_id=run_id, candidates=candidates("lost", "lost"))
    assert text == "The judge was lost. Submit it again."


async def test_a_candidate_without_a_result_is_taken_up_again_in_its_own_place(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run(candidates_per_round=2)
        first = await call.evaluate(run_id, "lost", "pass 1e-4")
        bench.executor.started.clear()
        lost = [{"name": "c0", "sources": {"cpu_source.cpp": "lost"}}]
        again = await call.error("hiera_candidates_evaluate", run_id=run_id, candidates=lost)
        status = await call("hiera_run_status", run_id=run_id)
    assert bench.executor.started == ["lost"]
    assert "judge was lost" in again
    assert [c["candidate_id"] for c in status["candidates"]] == [r["candidate_id"] for r in first["results"]]


async def test_a_judged_candidate_submitted_again_is_a_new_one(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        one = await call.evaluate(run_id, "pass 1e-4")
        two = await call.evaluate(run_id, "pass 1e-4")
    assert one["results"][0]["candidate_id"] != two["results"][0]["candidate_id"]


@pytest.mark.parametrize("decided", [(), ("space",), ("space", "direction")])
async def test_evaluating_before_the_round_is_planned_names_the_missing_step(
    bench: Any, candidates: Any, decided: tuple[str, ...]
) -> None:
    missing = ("space", "direction", "strategy")[len(decided)]
    async with bench.session() as call:
        run = await call("hiera_run_start", contract_id=call.contract_id)
        for kind in decided:
            await call(f"hiera_plan_{kind}", run_id=run["run_id"], choice="recommended")
        text = await call.error("hiera_candidates_evaluate", run_id=run["run_id"], candidates=candidates("pass 1e-4"))
    assert f"The run has no {missing} yet." in text
    assert f"hiera_plan_{missing}(run_id='{run['run_id']}')" in text


async def test_more_candidates_than_the_round_has_places_are_refused_and_take_none(bench: Any, candidates: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run(candidates_per_round=3)
        await call.evaluate(run_id, "pass 1e-4", "pass 1e-4")
        text = await call.error(
            "hiera_candidates_evaluate", run_id=run_id, candidates=candidates("pass 1e-4", "broken", prefix="d")
        )
        status = await call("hiera_run_status", run_id=run_id)
    assert "1 of 3 places left" in text
    assert "hiera_run_finish" in text
    assert len(status["candidates"]) == 2


async def test_unknown_files_are_refused_with_the_valid_ones(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        text = await call.error(
            "hiera_candidates_evaluate",
            run_id=run_id,
            candidates=[{"name": "a", "sources": {"../../kernel.cu": "x"}}],
        )
    assert "unknown files: ../../kernel.cu" in text
    assert "Valid: cpu_source.cpp, model_new.py." in text


async def test_two_candidates_of_one_name_are_refused(bench: Any) -> None:
    same = [{"name": "a", "sources": {"cpu_source.cpp": t}} for t in ("pass 1", "pass 2")]
    async with bench.session() as call:
        run_id = await call.planned_run()
        assert "same name: a" in await call.error("hiera_candidates_evaluate", run_id=run_id, candidates=same)


async def test_a_child_is_compared_with_its_parent(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        parent = (await call.evaluate(run_id, "pass 1e-4"))["results"][0]["candidate_id"]
        children = [
            {"name": n, "sources": {"cpu_source.cpp": f"pass {t}"}, "parent_id": parent}
            for n, t in (("fast", "5e-5"), ("slow", "2e-4"), ("same", "1e-4"))
        ]
        rows = (await call("hiera_candidates_evaluate", run_id=run_id, candidates=children))["results"]
    assert [r["versus_parent"]["verdict"] for r in rows] == ["faster", "slower", "no_difference"]


async def test_a_parent_of_another_run_is_refused(bench: Any) -> None:
    async with bench.session() as call:
        other = await call.planned_run()
        stranger = (await call.evaluate(other, "pass 1e-4"))["results"][0]["candidate_id"]
        run_id = await call.planned_run()
        child = [{"name": "a", "sources": {"cpu_source.cpp": "pass 1"}, "parent_id": stranger}]
        assert "not of this run" in await call.error("hiera_candidates_evaluate", run_id=run_id, candidates=child)


async def test_a_check_takes_no_place_and_gives_no_verdict(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        sources = {"cpu_source.cpp": "broken"}
        broken = await call("hiera_candidate_check", run_id=run_id, name="a", sources=sources)
        good = await call("hiera_candidate_check", run_id=run_id, name="a", sources={"cpu_source.cpp": "notrun"})
        status = await call("hiera_run_status", run_id=run_id)
    assert (broken["ok"], broken["build"]["ok"]) == (False, False)
    assert broken["build"]["diagnostics"][0]["line"] == 3
    assert (good["ok"], good["instruction_mix"]) == (True, {"fma": 3})
    assert good["notes"] == ["the binary says this"]
    assert status["candidates"] == []


async def test_a_profile_is_stored_and_only_made_of_what_passed(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        rows = (await call.evaluate(run_id, "pass 1e-4", "broken"))["results"]
        answer = await call("hiera_candidate_profile", candidate_id=rows[0]["candidate_id"])
        text = await call.error("hiera_candidate_profile", candidate_id=rows[1]["candidate_id"])
        stored = await call("hiera_artifact_read", uri=f"hiera://candidates/{rows[0]['candidate_id']}/profile")
    assert answer["profile"]["missing"] == {"spill_bytes": "not told here"}
    assert "Moves too much." in stored["text"]
    assert "ended as compile_error" in text


async def test_a_lesson_rests_on_an_evaluated_candidate_and_is_found_again(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        row = (await call.evaluate(run_id, "pass 1e-4"))["results"][0]
        lesson = {"title": "Blocking pays", "text": "Blocking the loops halved the time here."}
        text = await call.error("hiera_lesson_record", **lesson, candidate_ids=["k_none"])
        await call("hiera_lesson_record", **lesson, candidate_ids=[row["candidate_id"]])
        found = await call("hiera_knowledge_search", query="blocking")
    assert "k_none" in text
    assert found["lessons"][0]["candidate_ids"] == [row["candidate_id"]]
