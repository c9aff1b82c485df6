"""Resources, prompts, completions, the guide and paging."""

import json
from typing import Any

import pytest
from mcp import MCPError
from mcp.types import PromptReference, ResourceTemplateReference

from hiera_mcp import resources
from hiera_mcp.errors import RequestError
from hiera_mcp.tools.artifact_read import MAX_CHARS, page

URIS = [resource.uri for resource in resources.ALL]


async def read(client: Any, uri: str) -> str:
    return (await client.read_resource(uri)).contents[0].text


async def test_every_resource_is_listed_with_title_type_and_description(bench: Any, mode: str) -> None:
    async with bench.connect(mode) as client:
        templates = (await client.list_resource_templates()).resource_templates
        plain = (await client.list_resources()).resources
    found = {t.uri_template: t for t in templates} | {r.uri: r for r in plain}
    assert set(found) == set(URIS)
    assert all(r.title and r.description and r.mime_type for r in found.values())


async def test_a_run_can_be_read_back_whole(bench: Any, mode: str) -> None:
    async with bench.session(mode) as call:
        run_id = await call.planned_run()
        row = (await call.evaluate(run_id, "pass 1e-4"))["results"][0]
        candidate = row["candidate_id"]
        contract = json.loads(await read(call.client, f"hiera://contracts/{call.contract_id}"))
        header = await read(call.client, f"hiera://contracts/{call.contract_id}/files/contract.h")
        run = json.loads(await read(call.client, f"hiera://runs/{run_id}"))
        trajectory = json.loads(await read(call.client, f"hiera://runs/{run_id}/trajectory"))
        source = await read(call.client, row["source_uri"])
        log = await read(call.client, row["log_uri"])
        evaluation = json.loads(await read(call.client, f"hiera://candidates/{candidate}/evaluation"))
    assert contract["task"]["name"] == "linear_relu"
    assert header == "// header\n"
    assert [d["kind"] for d in run["decisions"]] == ["space", "direction", "strategy"]
    assert trajectory["candidates"][0]["outcome"]["timing"]["speedup"]["median"] == pytest.approx(2)
    assert [d["decision"]["kind"] for d in trajectory["decisions"]] == ["space", "direction", "strategy"]
    assert "pass 1e-4" in source
    assert "compiler said nothing" in log
    assert "candidate said hello" in log
    assert evaluation["status"] == "passed"


async def test_facts_are_readable(bench: Any) -> None:
    async with bench.session() as call:
        gpu = json.loads(await read(call.client, "hiera://hardware/h200"))
        rubric = await read(call.client, "hiera://rubrics/direction")
        doctor = json.loads(await read(call.client, "hiera://doctor"))
        slug = bench.deps.knowledge.entries[0].id
        entry = await read(call.client, f"hiera://knowledge/{slug}")
    assert gpu["gpu"]["target"] == "cuda:sm_90a"
    assert "criteria:" in rubric
    assert doctor["advice"] == ["nothing to do"]
    assert entry.startswith("# ")
    assert "## Steps" in entry


@pytest.mark.parametrize(
    ("uri", "named"),
    [
        ("hiera://rubrics/colour", "Valid: space, direction, strategy."),
        ("hiera://hardware/voodoo2", "NVIDIA H200"),
        ("hiera://contracts/c_0/files/contract.h", "No contract 'c_0'"),
        ("hiera://candidates/k_0/log", "No candidate 'k_0'"),
        ("hiera://candidates/k_0/profile", "No candidate 'k_0'"),
        ("hiera://runs/r_0", "No run 'r_0'"),
        ("hiera://knowledge/nothing-at-all", "No knowledge entry"),
        ("hiera://nowhere", "hiera://runs/{run_id}/trajectory"),
        ("hiera://contracts/..%2Fx", "Valid: hiera://guide"),
        ("hiera://doctor?thorough=perhaps", "thorough: Input should be a valid boolean"),
    ],
)
async def test_what_does_not_exist_is_answered_with_what_does(bench: Any, mode: str, uri: str, named: str) -> None:
    async with bench.connect(mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
    assert caught.value.error.code == -32602
    assert named in caught.value.error.message


async def test_an_unknown_file_of_a_contract_is_answered_with_its_files(bench: Any) -> None:
    async with bench.session() as call:
        text = await call.error("hiera_artifact_read", uri=f"hiera://contracts/{call.contract_id}/files/x.h")
    assert "Valid: contract.h." in text


async def test_the_guide_is_the_same_text_everywhere(bench: Any, mode: str) -> None:
    async with bench.session(mode) as call:
        by_tool = (await call("hiera_guide"))["text"]
        by_resource = await read(call.client, "hiera://guide")
        prompt = await call.client.get_prompt("optimize_kernel", {"task": "the one that the user asks for"})
        roles = {t: (await call("hiera_guide", topic=t))["text"] for t in ("ssda", "spa", "oa")}
        prompts = {t: (await call.client.get_prompt(t)).messages[0].content.text for t in roles}
    assert by_tool == by_resource == prompt.messages[0].content.text
    assert prompts == roles
    assert "{" not in by_tool.split("## 1")[0], "no placeholder is left"


async def test_the_prompt_puts_its_arguments_into_the_text(bench: Any, mode: str) -> None:
    arguments = {"task": "/tasks/softmax.py", "target": "cpu", "rounds": "2", "candidates": "4", "goal": "3x {goal}"}
    async with bench.connect(mode) as client:
        text = (await client.get_prompt("optimize_kernel", arguments)).messages[0].content.text
    assert "Task: /tasks/softmax.py" in text
    assert "rounds: 2 · candidates per round: 4" in text
    assert "Goal: 3x {goal}" in text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "task: is required."),
        ({"task": "t", "rounds": "0"}, "Valid: 1 to 100."),
        ({"task": "t", "rounds": "many"}, "rounds: Input should be a valid integer"),
        ({"task": "t", "target": "gpu"}, "Valid: auto, cpu, cuda:sm_80"),
        ({"task": "t", "colour": "red"}, "colour: no such argument."),
    ],
)
async def test_a_bad_prompt_argument_is_a_protocol_error_with_the_valid_values(
    bench: Any, mode: str, arguments: dict[str, str], expected: str
) -> None:
    async with bench.connect(mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.get_prompt("optimize_kernel", arguments)
    assert caught.value.error.code == -32602
    assert expected in caught.value.error.message


async def test_an_unknown_prompt_is_answered_with_all_prompts(bench: Any, mode: str) -> None:
    async with bench.connect(mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.get_prompt("optimise")
    assert caught.value.error.code == -32602
    assert "Valid: optimize_kernel, ssda, spa, oa." in caught.value.error.message


async def test_ids_and_names_are_completed(bench: Any, mode: str) -> None:
    async with bench.session(mode) as call:
        run = await call("hiera_run_start", contract_id=call.contract_id)

        async def complete(uri: str, name: str, value: str) -> list[str]:
            argument = {"name": name, "value": value}
            return (await call.client.complete(ResourceTemplateReference(uri=uri), argument)).completion.values

        assert await complete("hiera://runs/{run_id}", "run_id", "r") == [run["run_id"]]
        assert await complete("hiera://contracts/{contract_id}", "contract_id", "") == [call.contract_id]
        assert await complete("hiera://rubrics/{rubric}", "rubric", "s") == ["space", "strategy"]
        assert "h200" in await complete("hiera://hardware/{gpu}", "gpu", "h")
        prompt = PromptReference(name="optimize_kernel")
        targets = await call.client.complete(prompt, {"name": "target", "value": "c"})
        assert targets.completion.values[0] == "cpu"
        free = await call.client.complete(prompt, {"name": "goal", "value": "fas"})
        assert free.completion.values == []


def lines(n: int) -> str:
    return "\n".join(f"line {i}" for i in range(n))


def test_pages_join_to_the_whole_text() -> None:
    text, parts = lines(95), list[str]()
    offset: int | None = 0
    while offset is not None:
        got = page("u", text, offset, 10, None)
        parts.append(got.text)
        offset = got.next_offset
    assert "\n".join(parts) == text


def test_a_page_never_grows_beyond_what_clients_show() -> None:
    got = page("u", "\n".join("x" * 1000 for _ in range(100)), 0, 2000, None)
    assert len(got.text) <= MAX_CHARS
    assert got.next_offset == got.lines


def test_a_line_that_is_too_long_is_cut_and_says_so() -> None:
    got = page("u", "y" * (MAX_CHARS + 5), 0, 10, None)
    assert got.text.endswith("[5 characters cut]")
    assert got.next_offset is None


def test_grep_finds_either_word_in_any_case_with_line_numbers() -> None:
    got = page("u", "Alpha\nbeta\nGAMMA\n", 0, 10, "alpha|gamma")
    assert got.text == "1: Alpha\n3: GAMMA"
    assert got.total_lines == 2


def test_an_empty_text_is_an_empty_page() -> None:
    assert page("u", "", 0, 10, None).lines == 0


def test_an_offset_beyond_the_end_is_refused() -> None:
    with pytest.raises(RequestError, match="There are 3 lines"):
        page("u", lines(3), 3, 10, None)
