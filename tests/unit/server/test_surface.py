"""What clients see of the tools: snapshots, and rules that hold for all of them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp import tools
from hiera_mcp.server import INSTRUCTIONS, create_server

SNAPSHOTS = Path(__file__).parents[2] / "snapshots"
UPDATE = os.environ.get("HIERA_UPDATE_SNAPSHOTS") == "1"
NAMES = [tool.name for tool in tools.ALL]

MODEL_VISIBLE = 24_000
"""Characters of names, descriptions and input schemas: well under 10,000 tokens."""
EVERYTHING = 72_000
"""Characters of tools/list with output schemas, which most clients keep from the model."""


async def listed(bench: Any) -> dict[str, dict[str, Any]]:
    found = await create_server(bench.open).list_tools()
    return {t.name: t.model_dump(mode="json", by_alias=True, exclude_none=True) for t in found}


@pytest.mark.parametrize("name", NAMES)
async def test_a_tool_is_what_its_snapshot_says(bench: Any, name: str) -> None:
    text = json.dumps((await listed(bench))[name], indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    path = SNAPSHOTS / f"{name}.json"
    if UPDATE:
        path.write_text(text)
    assert path.exists(), f"no snapshot of {name}: run the tests with HIERA_UPDATE_SNAPSHOTS=1 and look at the change"
    assert path.read_text() == text, "the tool changed: HIERA_UPDATE_SNAPSHOTS=1 rewrites the snapshot"


def test_no_snapshot_is_left_of_a_tool_that_is_gone() -> None:
    assert {p.stem for p in SNAPSHOTS.glob("*.json")} == set(NAMES)


def test_names_are_unique_and_carry_the_prefix() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert all(name.startswith("hiera_") and len(f"mcp__hiera__{name}") <= 64 for name in NAMES)


async def test_every_tool_sets_all_hints_on_purpose(bench: Any) -> None:
    for name, tool in (await listed(bench)).items():
        hints = tool["annotations"]
        assert {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} <= set(hints), name
        assert not (hints["readOnlyHint"] and hints["destructiveHint"]), name


async def test_every_tool_has_title_description_and_output_schema(bench: Any) -> None:
    for name, tool in (await listed(bench)).items():
        assert tool["title"], name
        assert 80 <= len(tool["description"]) < 2000, name
        assert tool["outputSchema"]["type"] == "object", name


async def test_no_schema_has_a_combinator_at_its_top(bench: Any) -> None:
    for name, tool in (await listed(bench)).items():
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            assert not {"anyOf", "oneOf", "allOf"} & set(schema), name


async def test_every_input_schema_refuses_unknown_arguments(bench: Any) -> None:
    for name, tool in (await listed(bench)).items():
        assert tool["inputSchema"]["additionalProperties"] is False, name


async def test_every_result_has_a_next_step(bench: Any) -> None:
    for name, tool in (await listed(bench)).items():
        assert "next_step" in tool["outputSchema"]["required"], name


async def test_long_calls_take_wait_s_and_return_a_job(bench: Any) -> None:
    long = {n: t for n, t in (await listed(bench)).items() if "job_id" in t["outputSchema"]["properties"]}
    assert set(long) == {
        "hiera_contract_build",
        "hiera_candidate_check",
        "hiera_candidates_evaluate",
        "hiera_candidate_profile",
        "hiera_job",
    }
    for tool in long.values():
        wait_s = tool["inputSchema"]["properties"]["wait_s"]
        assert (wait_s["minimum"], wait_s["maximum"], wait_s["default"]) == (0, 300, 25)


async def test_the_list_of_tools_stays_within_its_budget(bench: Any) -> None:
    tools_list = list((await listed(bench)).values())
    visible = [{k: t[k] for k in ("name", "description", "inputSchema")} for t in tools_list]
    assert len(json.dumps(visible, separators=(",", ":"))) < MODEL_VISIBLE
    assert len(json.dumps(tools_list, separators=(",", ":"))) < EVERYTHING


async def test_no_result_field_takes_a_measurement_from_the_agent(bench: Any) -> None:
    for name, tool in (await listed(bench)).items():
        given = json.dumps(tool["inputSchema"]).lower()
        assert not any(word in given for word in ("speedup", "time_s", "reference_s", '"passed"')), name


async def test_the_server_introduces_itself(bench: Any, mode: str) -> None:
    async with bench.connect(mode) as client:
        assert client.server_info.name == "hiera-mcp"
        assert client.server_info.version
        assert client.instructions == INSTRUCTIONS
    assert len(INSTRUCTIONS) < 2000
    assert "hiera_guide" in INSTRUCTIONS
    assert "optimize_kernel" in INSTRUCTIONS


async def test_tools_named_in_the_instructions_exist() -> None:
    words = {w.strip("(),.:;`") for w in INSTRUCTIONS.replace("(", " ").split()}
    named = {w for w in words if w.startswith("hiera_") and w != "hiera_mcp"}
    assert named
    assert named <= set(NAMES)
