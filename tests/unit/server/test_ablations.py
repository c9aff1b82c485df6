"""Runs that do without a part of the planner: recorded, shown, and led by next_step to the end all the same."""

import re
from dataclasses import replace
from typing import Any

import pytest

CALL = re.compile(r"(hiera_\w+)\((?:run_id|candidate_id)=[\"']([^\"']+)[\"']")
FIRST = {"hiera_candidate_profile": "candidate_id"}


async def walk(call: Any, run: dict[str, Any]) -> list[str]:
    """Do what next_step says until the run is finished; the tools in order."""
    step: str = run["next_step"]
    tools: list[str] = []
    while "hiera_run_finish" not in tools:
        assert len(tools) < 30, step
        tool, name = CALL.findall(step)[0]
        arguments: dict[str, Any] = {FIRST.get(tool, "run_id"): name}
        if tool.startswith("hiera_plan"):
            arguments["choice"] = "recommended"
        if tool == "hiera_candidates_evaluate":
            text = f"pass {2e-4 / (1 + len(tools))}"
            arguments["candidates"] = [{"name": f"c{len(tools)}", "sources": {"cpu_source.cpp": text}}]
        step = (await call(tool, **arguments))["next_step"]
        tools.append(tool)
    return tools


@pytest.mark.parametrize(
    ("plan", "decided"),
    [
        ([], {"space", "direction", "strategy"}),
        (["fixed-space=cpp"], {"direction", "strategy"}),
        (["no-directions"], {"space", "strategy"}),
        (["fixed-space=cpp", "no-directions", "no-contract-files", "no-memory"], {"strategy"}),
    ],
)
async def test_next_step_leads_through_a_run_that_decides_less(bench: Any, plan: list[str], decided: set[str]) -> None:
    async with bench.session() as call:
        budget = {"rounds": 2, "candidates_per_round": 1}
        run = await call("hiera_run_start", contract_id=call.contract_id, plan=plan, **budget)
        tools = await walk(call, run)
        status = await call("hiera_run_status", run_id=run["run_id"])
    assert {tool.removeprefix("hiera_plan_") for tool in tools if tool.startswith("hiera_plan")} == decided
    assert run["plan"] == status["plan"] == plan
    assert status["state"] == "finished" and status["round"] == 2
    assert {c["direction"] is None for c in status["candidates"]} == {"direction" not in decided}


async def test_what_a_server_is_started_with_holds_for_each_of_its_runs(bench: Any) -> None:
    bench.settings = replace(bench.settings, plan=("no-directions",))
    async with bench.session() as call:
        run = await call("hiera_run_start", contract_id=call.contract_id, plan=["no-memory"])
        text = await call.error("hiera_plan_direction", run_id=run["run_id"])
    assert run["plan"] == ["no-directions", "no-memory"]
    assert "hiera_plan_space" in text or "no-directions" in text


async def test_a_word_that_means_nothing_and_a_space_of_another_target_are_refused(bench: Any) -> None:
    async with bench.session() as call:
        unknown = await call.error("hiera_run_start", contract_id=call.contract_id, plan=["no-brain"])
        other = await call.error("hiera_run_start", contract_id=call.contract_id, plan=["fixed-space=cuda"])
    assert "no-contract-files" in unknown
    assert "cpp_libraries" in other


async def test_without_contract_files_a_server_shows_the_reference_and_the_header_alone(bench: Any) -> None:
    bench.settings = replace(bench.settings, plan=("no-contract-files",))
    async with bench.session() as call:
        base = f"hiera://contracts/{call.contract_id}"
        header = await call("hiera_artifact_read", uri=f"{base}/files/contract.h")
        refused = [await call.error("hiera_artifact_read", uri=uri) for uri in (base, f"{base}/lists/parameters")]
    assert header["text"] == "// header"
    assert all("no-contract-files" in text for text in refused)


async def test_without_memory_no_lesson_of_another_run_is_shown(bench: Any) -> None:
    async def lessons(call: Any) -> list[str]:
        return [lesson["title"] for lesson in (await call("hiera_knowledge_search", query="rows"))["lessons"]]

    async with bench.session() as call:
        candidate = (await call.evaluate(await call.planned_run(), "pass 1e-4"))["results"][0]["candidate_id"]
        await call("hiera_lesson_record", title="Fuse rows", text="It pays where rows fit.", candidate_ids=[candidate])
        assert await lessons(call) == ["Fuse rows"]
    bench.settings = replace(bench.settings, plan=("no-memory",))
    async with bench.session() as call:
        assert await lessons(call) == []
