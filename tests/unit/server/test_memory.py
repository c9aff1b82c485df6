"""What earlier runs have to say reaches the planning tools, and a run never counts itself."""

from typing import Any


def memory_of(answer: Any) -> dict[str, Any]:
    """Option → its row for the criterion `memory`."""
    return {o["option"]: next(c for c in o["criteria"] if c["criterion"] == "memory") for o in answer["options"]}


async def test_a_finished_round_of_another_run_is_counted_and_quoted(bench: Any) -> None:
    async with bench.session() as call:
        earlier = await call.planned_run()
        await call.evaluate(earlier, "pass 1e-4")
        space = (await call("hiera_run_status", run_id=earlier))["space"]
        run = await call("hiera_run_start", contract_id=call.contract_id)
        rows = memory_of(await call("hiera_plan_space", run_id=run["run_id"]))
    assert rows[space]["evidence"]["earlier_runs"]["rounds"] == 1
    assert rows[space]["score"] > max(row["score"] for option, row in rows.items() if option != space)


async def test_a_runs_own_rounds_are_no_memory_of_it(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run(rounds=2)
        await call.evaluate(run_id, "pass 1e-4")
        rows = memory_of(await call("hiera_plan_direction", run_id=run_id))
    assert all(row["score"] is None and "no other run" in row["explanation"] for row in rows.values())


async def test_what_was_remembered_is_stored_with_the_decision(bench: Any) -> None:
    async with bench.session() as call:
        await call.evaluate(await call.planned_run(), "pass 1e-4")
        run_id = await call.planned_run()
        shown = await call("hiera_artifact_read", uri=f"hiera://runs/{run_id}/trajectory")
    assert '"earlier_runs"' in shown["text"] and "1 earlier round" in shown["text"]


async def test_a_run_without_memory_is_planned_as_if_it_were_the_first(bench: Any) -> None:
    async with bench.session() as call:
        await call.evaluate(await call.planned_run(), "pass 1e-4")
        run = await call("hiera_run_start", contract_id=call.contract_id, plan=["no-memory"])
        rows = memory_of(await call("hiera_plan_space", run_id=run["run_id"]))
    assert all(row["score"] is None and "no-memory" in row["explanation"] for row in rows.values())


async def test_a_lesson_says_what_its_candidates_showed_and_is_found_with_it(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        results = (await call.evaluate(run_id, "pass 1e-4", "broken"))["results"]
        ids = [row["candidate_id"] for row in results]
        lesson = {"title": "Blocking pays", "text": "Blocking the loops halved the time here."}
        recorded = await call("hiera_lesson_record", **lesson, candidate_ids=ids)
        found = await call("hiera_knowledge_search", query="blocking")
    first, second = recorded["proof"]
    assert ": passed, " in first and "× [" in first and ids[0] in first
    assert f": {results[1]['status']}, " in second
    assert found["lessons"][0]["proof"] == recorded["proof"]


async def test_a_lesson_about_another_direction_than_that_of_its_candidates_is_refused(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        row = (await call.evaluate(run_id, "pass 1e-4"))["results"][0]
        direction = (await call("hiera_run_status", run_id=run_id))["direction"]
        other = "control_flow" if direction != "control_flow" else "parallelism"
        lesson = {"title": "Blocking pays", "text": "Blocking the loops halved the time here."}
        text = await call.error("hiera_lesson_record", **lesson, candidate_ids=[row["candidate_id"]], direction=other)
    assert other in text and direction in text


async def test_a_search_for_a_run_without_memory_shows_no_lessons(bench: Any) -> None:
    async with bench.session() as call:
        row = (await call.evaluate(await call.planned_run(), "pass 1e-4"))["results"][0]
        lesson = {"title": "Blocking pays", "text": "Blocking the loops halved the time here."}
        await call("hiera_lesson_record", **lesson, candidate_ids=[row["candidate_id"]])
        found: dict[str, int] = {}
        for plan in ([], ["no-memory"]):
            run = await call("hiera_run_start", contract_id=call.contract_id, plan=plan)
            answer = await call("hiera_knowledge_search", query="blocking", run_id=run["run_id"])
            found[" ".join(plan)] = len(answer["lessons"])
    assert found == {"": 1, "no-memory": 0}
