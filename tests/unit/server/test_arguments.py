"""Bad arguments and errors: what the agent reads."""

import json
from typing import Any

import pytest


async def test_an_unknown_argument_is_refused_with_the_valid_names(bench: Any, mode: str) -> None:
    async with bench.session(mode) as call:
        text = await call.error("hiera_run_start", contract_id="c", round=2)
    assert "round: no such argument." in text
    assert "Did you mean `rounds`?" in text
    assert "Valid: contract_id, goal, rounds, candidates_per_round, plan." in text


async def test_an_unknown_name_inside_an_argument_is_refused_with_the_valid_names(bench: Any) -> None:
    async with bench.session() as call:
        bad = [{"name": "a", "sources": {"cpu_source.cpp": "x"}, "author": "me"}]
        text = await call.error("hiera_candidates_evaluate", run_id="r", candidates=bad)
    assert text.count("\n") == 1, "one line per fault"
    assert "candidates.0.author: no such argument. Valid: name, sources, parent_id, idea." in text


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("hiera_job", {"job_id": "j", "action": "kill"}, "action: Input should be 'wait', 'status' or 'cancel'"),
        ("hiera_run_start", {"contract_id": "c", "rounds": 0}, "Valid: 1 to 100."),
        ("hiera_job", {"job_id": "j", "wait_s": 301}, "Valid: 0 to 300."),
        ("hiera_contract_build", {"source": "x", "precision": "fp8"}, "Valid: float64, float32, float16, bfloat16."),
        ("hiera_guide", {"topic": "x"}, "Valid: loop, ssda, spa, oa."),
        ("hiera_run_start", {}, "contract_id: is required. From hiera_contract_build."),
        (
            "hiera_candidates_evaluate",
            {"run_id": "r", "candidates": []},
            "candidates: List should have at least 1 item",
        ),
    ],
)
async def test_a_bad_value_is_answered_with_the_valid_ones(
    bench: Any, tool: str, arguments: dict[str, Any], expected: str
) -> None:
    async with bench.session() as call:
        text = await call.error(tool, **arguments)
    assert text.startswith(f"Invalid arguments for {tool}:\n- ")
    assert expected in text
    assert "pydantic" not in text
    assert "input_value" not in text


async def test_each_fault_has_a_line_of_its_own(bench: Any) -> None:
    async with bench.session() as call:
        text = await call.error("hiera_run_start", rounds=0, candidates_per_round=99, gaol="x")
    assert len(text.splitlines()) == 1 + 4


async def test_an_unknown_tool_is_answered_with_all_tools(bench: Any, mode: str) -> None:
    async with bench.session(mode) as call:
        text = await call.error("hiera_evaluate")
    assert "There is no tool `hiera_evaluate`." in text
    assert "hiera_candidates_evaluate" in text


async def test_an_error_of_ours_arrives_whole(bench: Any, mode: str) -> None:
    async with bench.session(mode) as call:
        run = await call("hiera_run_start", contract_id=call.contract_id)
        text = await call.error("hiera_run_status", run_id="r_nothing")
    assert "r_nothing" in text
    assert run["run_id"] in text, "the valid ids are named"
    assert "Error executing tool" not in text


async def test_a_fault_of_the_server_names_its_kind_and_hides_its_text(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        text = await call.error("hiera_candidate_check", run_id=run_id, name="a", sources={"cpu_source.cpp": "bug"})
    assert "fault in the server (RuntimeError)" in text
    assert "secret" not in text


async def test_text_that_looks_like_json_stays_text(bench: Any) -> None:
    async with bench.session() as call:
        page = await call("hiera_artifact_read", uri="hiera://rubrics/space", grep='["kind"]')
    assert page["total_lines"] == 0


async def test_a_list_sent_as_json_text_is_understood(bench: Any, candidates: Any) -> None:
    """Some clients send every argument as a string."""
    async with bench.session() as call:
        run_id = await call.planned_run()
        answer = await call("hiera_candidates_evaluate", run_id=run_id, candidates=json.dumps(candidates("pass 1e-4")))
    assert answer["results"][0]["status"] == "passed"


@pytest.mark.parametrize("bad", ["a\0b", "a\ud800b"], ids=["NUL", "surrogate"])
@pytest.mark.parametrize(
    ("tool", "arguments", "where"),
    [
        ("hiera_run_status", {"run_id": "BAD"}, "run_id"),
        ("hiera_plan_space", {"run_id": "r", "choice": "cpp", "reason": "BAD"}, "reason"),
        ("hiera_knowledge_search", {"query": "BAD"}, "query"),
        ("hiera_artifact_read", {"uri": "hiera://contracts/BAD"}, "uri"),
        ("hiera_contract_build", {"path": "/tmp/BAD.py"}, "path"),
        ("hiera_lesson_record", {"title": "abc", "text": "BAD", "candidate_ids": []}, "text"),
        (
            "hiera_candidates_evaluate",
            {"run_id": "r", "candidates": [{"name": "c", "sources": {"cpu_source.cpp": "BAD"}}]},
            "candidates.0.sources.cpu_source.cpp",
        ),
        (
            "hiera_candidates_evaluate",
            {"run_id": "r", "candidates": json.dumps([{"name": "c", "sources": {"cpu_source.cpp": "BAD"}}])},
            "candidates.0.sources.cpu_source.cpp",
        ),
    ],
)
async def test_text_that_nothing_can_store_is_refused_before_it_gets_anywhere(
    bench: Any, bad: str, tool: str, arguments: dict[str, Any], where: str
) -> None:
    given = json.loads(json.dumps(arguments).replace("BAD", json.dumps(bad)[1:-1]))
    if isinstance(given.get("candidates"), str):
        given["candidates"] = arguments["candidates"].replace("BAD", json.dumps(bad)[1:-1])
    async with bench.session() as call:
        text = await call.error(tool, **given)
    assert text.startswith(f"Invalid arguments for {tool}:\n- {where}: holds ")
    assert "at position" in text


async def test_a_name_that_nothing_can_store_is_refused(bench: Any) -> None:
    async with bench.session() as call:
        text = await call.error("hiera_candidate_check", run_id="r", name="c", sources={"a\0b": "x"})
    assert "- a name in sources: holds a NUL character at position 1." in text


async def test_an_error_that_echoes_a_huge_argument_stays_short_and_keeps_its_end(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        for tool, argument in (("hiera_run_status", "run_id"), ("hiera_artifact_read", "uri")):
            text = await call.error(tool, **{argument: "r" * 200_000})
            assert len(text) < 8_000
            assert "characters cut" in text
            assert text.rstrip().endswith(".")
        assert run_id in await call.error("hiera_run_status", run_id="r" * 200_000)


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        (
            "hiera_candidates_evaluate",
            {"run_id": "r", "candidates": {"name": "a"}},
            "candidates: should be a list, each item an object with the fields name, sources, parent_id, idea.",
        ),
        ("hiera_candidates_evaluate", {"run_id": "r", "candidates": ["a"]}, "candidates.0: should be an object with"),
        (
            "hiera_plan_strategy",
            {"run_id": "r", "strategy": "faster"},
            "strategy: should be an object with the fields title, space, direction, steps,",
        ),
        ("hiera_candidate_check", {"run_id": "r", "name": "a", "sources": "x"}, "sources: should be an object."),
        (
            "hiera_lesson_record",
            {"title": "abc", "text": "long enough", "candidate_ids": "k"},
            "candidate_ids: should be a list, each item a string.",
        ),
    ],
)
async def test_a_value_of_the_wrong_shape_is_answered_with_the_right_one(
    bench: Any, tool: str, arguments: dict[str, Any], expected: str
) -> None:
    async with bench.session() as call:
        assert expected in await call.error(tool, **arguments)
