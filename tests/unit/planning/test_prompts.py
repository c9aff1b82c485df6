"""The orchestration texts are short and name only tools that exist."""

import re
from importlib.resources import files

import pytest

TOOLS = {
    "hiera_guide",
    "hiera_contract_build",
    "hiera_run_start",
    "hiera_run_status",
    "hiera_run_finish",
    "hiera_plan_space",
    "hiera_plan_direction",
    "hiera_plan_strategy",
    "hiera_candidate_check",
    "hiera_candidates_evaluate",
    "hiera_candidate_profile",
    "hiera_knowledge_search",
    "hiera_lesson_record",
    "hiera_job",
    "hiera_artifact_read",
}
BINDING = {"hiera_run", "hiera_prepare", "hiera_workspace_bytes"}
PLACEHOLDERS = {"task", "target", "rounds", "candidates", "goal"}
NAMES = ("optimize_kernel", "ssda", "spa", "oa")


def text_of(name: str) -> str:
    return files("hiera_mcp").joinpath("resources", "prompts", f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_is_short(name: str) -> None:
    assert len(text_of(name).split()) < (700 if name == "optimize_kernel" else 350)
    assert len(text_of(name)) < (4600 if name == "optimize_kernel" else 2400)  # about 1,150 and 600 tokens


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_names_only_tools_that_exist(name: str) -> None:
    assert set(re.findall(r"hiera_\w+", text_of(name))) <= TOOLS | BINDING


def test_the_loop_names_every_tool_that_a_run_needs() -> None:
    optional = {"hiera_guide", "hiera_run_status"}
    assert TOOLS - optional <= set(re.findall(r"hiera_\w+", text_of("optimize_kernel")))


def test_only_the_loop_has_placeholders_and_only_the_known_ones() -> None:
    assert set(re.findall(r"\{(\w+)\}", text_of("optimize_kernel"))) == PLACEHOLDERS
    for name in ("ssda", "spa", "oa"):
        assert not PLACEHOLDERS & set(re.findall(r"\{(\w+)\}", text_of(name)))
