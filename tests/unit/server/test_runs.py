"""Runs: planning through the tools, rounds, finishing, and how much a view holds."""

import json
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.tools.run_view import MAX_ROWS


async def test_looking_at_the_evidence_records_nothing(bench: Any, mode: str) -> None:
    async with bench.session(mode) as call:
        run = await call("hiera_run_start", contract_id=call.contract_id, goal="fast")
        view = await call("hiera_plan_space", run_id=run["run_id"])
        status = await call("hiera_run_status", run_id=run["run_id"])
    assert (view["recorded"], view["decision_id"], view["choice"]) == (False, None, None)
    assert [o["option"] for o in view["options"]] == ["cpp", "cpp_libraries", "cpp_libraries_pytorch"]
    assert all(c["explanation"] and "weight" in c for o in view["options"] for c in o["criteria"])
    assert "Nothing is recorded yet" in view["next_step"]
    assert status["decisions"] == []


async def test_the_recommendation_is_recorded_as_the_servers(bench: Any) -> None:
    async with bench.session() as call:
        run = await call("hiera_run_start", contract_id=call.contract_id)
        view = await call("hiera_plan_space", run_id=run["run_id"], choice="recommended")
        status = await call("hiera_run_status", run_id=run["run_id"])
    assert (view["recorded"], view["decided_by"]) == (True, "server")
    assert view["choice"] == view["recommended"] == status["space"]
    assert "hiera_plan_direction" in view["next_step"]
    assert status["decisions"][0]["decision_id"] == view["decision_id"]


async def test_another_choice_is_the_agents_and_needs_a_reason(bench: Any) -> None:
    async with bench.session() as call:
        run = await call("hiera_run_start", contract_id=call.contract_id)
        view = await call("hiera_plan_space", run_id=run["run_id"])
        other = next(o["option"] for o in view["options"] if o["option"] != view["recommended"] and not o["gates"])
        text = await call.error("hiera_plan_space", run_id=run["run_id"], choice=other)
        taken = await call("hiera_plan_space", run_id=run["run_id"], choice=other, reason="I know this host.")
    assert "reason" in text
    assert (taken["decided_by"], taken["reason"]) == ("agent", "I know this host.")


async def test_an_unknown_choice_is_answered_with_the_options(bench: Any) -> None:
    async with bench.session() as call:
        run = await call("hiera_run_start", contract_id=call.contract_id)
        text = await call.error("hiera_plan_space", run_id=run["run_id"], choice="rust", reason="r")
    assert "cpp, cpp_libraries, cpp_libraries_pytorch, recommended" in text


async def test_a_forbidden_direction_names_its_gate(bench: Any) -> None:
    contract = bench.contract.model_copy(update={"target": "cuda:sm_90a"})
    bench.contract = contract
    async with bench.session() as call:
        run = await call("hiera_run_start", contract_id=call.contract_id)
        await call("hiera_plan_space", run_id=run["run_id"], choice="recommended")
        text = await call.error(
            "hiera_plan_direction", run_id=run["run_id"], choice="tensor_core_instructions", reason="I want to"
        )
    assert "tensor_core_legal" in text


async def test_the_two_leading_directions_come_with_techniques_of_their_own(bench: Any) -> None:
    async with bench.session() as call:
        run_id = (await call("hiera_run_start", contract_id=call.contract_id))["run_id"]
        await call("hiera_plan_space", run_id=run_id, choice="recommended")
        view = await call("hiera_plan_direction", run_id=run_id)
        for option in [o for o in view["options"] if o["techniques"]]:
            for line in option["techniques"]:
                found = await call("hiera_artifact_read", uri=f"hiera://knowledge/{line.partition(':')[0]}")
                assert f"Direction: {option['option']}" in found["text"]
    expanded = [o["option"] for o in view["options"] if o["techniques"]]
    assert len(expanded) == 2 and view["recommended"] in expanded


async def test_planning_out_of_order_names_the_step_before(bench: Any) -> None:
    async with bench.session() as call:
        run_id = (await call("hiera_run_start", contract_id=call.contract_id))["run_id"]
        assert f"hiera_plan_space(run_id='{run_id}')" in await call.error("hiera_plan_direction", run_id=run_id)
        assert "hiera_plan_space" in await call.error("hiera_plan_strategy", run_id=run_id)


async def test_an_own_strategy_is_recorded_and_comes_back_with_a_brief(bench: Any) -> None:
    async with bench.session() as call:
        run_id = (await call("hiera_run_start", contract_id=call.contract_id))["run_id"]
        for kind in ("space", "direction"):
            view = await call(f"hiera_plan_{kind}", run_id=run_id, choice="recommended")
        shown = await call("hiera_plan_strategy", run_id=run_id)
        status = await call("hiera_run_status", run_id=run_id)
        own = {
            "title": "Unroll by four",
            "space": status["space"],
            "direction": view["choice"],
            "steps": ["Unroll the inner loop by four."],
            "predicted_metric": "time",
        }
        taken = await call("hiera_plan_strategy", run_id=run_id, strategy=own, reason="The loop is short.")
        both = await call.error("hiera_plan_strategy", run_id=run_id, strategy=own, choice="recommended")
    assert (shown["strategy"], shown["brief"]) == (None, "")
    assert shown["techniques"]
    assert taken["strategy"]["title"] == "Unroll by four"
    assert "Unroll the inner loop by four." in taken["brief"]
    assert "hiera_candidates_evaluate" in taken["next_step"]
    assert "not both" in both


async def test_the_first_decision_after_candidates_opens_the_next_round(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run(rounds=2)
        await call.evaluate(run_id, "pass 1e-4")
        looked = await call("hiera_plan_direction", run_id=run_id)
        decided = await call("hiera_plan_direction", run_id=run_id, choice="recommended")
        row = (await call.evaluate(run_id, "pass 9e-5"))["results"][0]
        text = await call.error("hiera_plan_direction", run_id=run_id, choice="recommended")
    assert looked["round"] == decided["round"] == row["round"] == 2
    assert "hiera_run_finish" in text


async def test_finishing_exports_the_winner_and_closes_the_run(bench: Any, candidates: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        await call.evaluate(run_id, "pass 2e-4", "pass 1e-4", "broken")
        answer = await call("hiera_run_finish", run_id=run_id)
        again = await call("hiera_run_finish", run_id=run_id)
        text = await call.error("hiera_candidates_evaluate", run_id=run_id, candidates=candidates("pass 1"))
    folder = Path(answer["export_dir"])
    assert folder == bench.settings.data_dir / "exports" / run_id
    assert sorted(p.name for p in folder.iterdir()) == answer["files"] == again["files"]
    assert (folder / "cpu_source.cpp").read_text() == "pass 1e-4"
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["best"]["name"] == "c1"
    assert summary["state"] == "finished"
    assert "is finished" in text


async def test_a_run_with_open_work_is_not_finished(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        answer = await call.evaluate(run_id, "hang", wait_s=0)
        text = await call.error("hiera_run_finish", run_id=run_id)
        assert (await call("hiera_run_status", run_id=run_id))["state"] == "open"
    assert answer["job_id"] in text


async def test_a_run_in_which_nothing_passed_can_be_finished(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        await call.evaluate(run_id, "broken")
        answer = await call("hiera_run_finish", run_id=run_id)
    assert answer["run"]["best"] is None


async def test_a_large_run_is_shown_within_what_clients_take(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run(candidates_per_round=32)
        for n in range(5):
            texts = ["broken" if i % 2 else f"pass {1e-4 * (1 + n)}" for i in range(6)]
            await call.evaluate(run_id, *texts)
        status = await call("hiera_run_status", run_id=run_id)
    assert len(status["candidates"]) == MAX_ROWS
    assert status["earlier_candidates"] == 30 - MAX_ROWS
    assert len(json.dumps(status)) < 50_000


@pytest.mark.parametrize("where", ["hiera_run_status", "hiera_plan_space", "hiera_run_finish"])
async def test_an_unknown_run_is_answered_with_the_known_ones(bench: Any, where: str) -> None:
    async with bench.session() as call:
        run = await call("hiera_run_start", contract_id=call.contract_id)
        assert run["run_id"] in await call.error(where, run_id="r_none")
