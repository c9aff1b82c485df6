"""The parts between the SDK and our tools: faults, schemas, texts, errors that come out of task groups."""

from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hiera_mcp.errors import StoreError
from hiera_mcp.guides import fill
from hiera_mcp.protocol.faults import explain
from hiera_mcp.protocol.schemas import without_titles
from hiera_mcp.serving.stopping import unwrapped
from hiera_mcp.tools.artifact_read import MAX_CHARS, page


class Tile(BaseModel):
    model_config = ConfigDict(extra="forbid")
    size: int = Field(ge=1, le=128)
    title: str = "t"


class Plan(BaseModel):
    model_config = ConfigDict(extra="forbid")
    tiles: list[Tile] = []
    by_name: dict[str, Tile] = {}
    best: Tile | None = None


def faults(data: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        Plan.model_validate(data)
    return explain(caught.value, Plan.model_json_schema())


@pytest.mark.parametrize("where", ["tiles.0", "by_name.a", "best"])
def test_a_fault_deep_inside_names_what_is_valid_there(where: str) -> None:
    tile = {"size": 0, "tittle": "x"}
    data = {"tiles.0": {"tiles": [tile]}, "by_name.a": {"by_name": {"a": tile}}, "best": {"best": tile}}[where]
    text = faults(data)
    assert f"- {where}.size: Input should be greater than or equal to 1. Valid: 1 to 128." in text
    assert f"- {where}.tittle: no such argument. Did you mean `title`? Valid: size, title." in text


def test_rejected_values_are_not_repeated() -> None:
    assert "hunter2" not in faults({"best": {"size": "hunter2"}})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(JSON)
def test_whatever_is_wrong_is_explained(data: Any) -> None:
    try:
        Plan.model_validate(data)
    except ValidationError as error:
        assert explain(error, Plan.model_json_schema()).startswith("- ")


def test_titles_go_and_fields_called_title_stay() -> None:
    schema = without_titles(Plan.model_json_schema())
    assert set(schema["$defs"]["Tile"]["properties"]) == {"size", "title"}
    assert "title" not in schema
    assert "title" not in schema["$defs"]["Tile"]["properties"]["size"]


@given(st.text(), st.integers(1, 50), st.text(max_size=3))
def test_pages_of_any_text_join_to_its_lines(text: str, limit: int, grep: str) -> None:
    lines, offset = list[str](), 0
    while True:
        got = page("u", text, offset, limit, None)
        assert len(got.text) <= MAX_CHARS + 100
        lines += got.text.split("\n") if got.lines else []
        if got.next_offset is None:
            break
        assert got.next_offset > offset
        offset = got.next_offset
    assert lines == text.splitlines()
    assert page("u", text, 0, limit, grep).total_lines <= len(lines)


@given(st.text(), st.dictionaries(st.from_regex(r"\w+", fullmatch=True), st.text()))
def test_filling_touches_only_the_names_that_have_a_value(text: str, values: dict[str, str]) -> None:
    assert fill(text, {}) == text
    filled = fill("".join(f"{{{name}}}|" for name in values) + text.replace("{", ""), values)
    assert filled.startswith("".join(f"{value}|" for value in values.values()))


async def test_an_error_of_ours_comes_out_of_task_groups_as_itself() -> None:
    async def fail() -> None:
        raise StoreError("no room")

    with pytest.raises(StoreError, match="no room"), unwrapped():
        async with anyio.create_task_group() as outer, anyio.create_task_group() as inner:
            outer.start_soon(anyio.sleep_forever)
            inner.start_soon(fail)


async def test_other_errors_stay_wrapped() -> None:
    async def fail() -> None:
        raise RuntimeError("bug")

    with pytest.raises(ExceptionGroup), unwrapped():
        async with anyio.create_task_group() as group:
            group.start_soon(fail)
