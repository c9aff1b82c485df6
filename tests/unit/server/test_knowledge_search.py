"""hiera_knowledge_search as a client sees it."""

from typing import Any

import pytest


async def test_entries_come_in_short_with_the_way_to_the_whole_text(bench: Any, mode: str) -> None:
    async with bench.session(mode) as call:
        found = await call("hiera_knowledge_search", query="cp.async sm_80+", arch="cuda:sm_80", limit=3)
        whole = await call("hiera_artifact_read", uri=found["entries"][0]["uri"])
    assert len(found["entries"]) == 3
    assert all(entry["why"] == "" for entry in found["entries"])
    assert found["entries"][0]["uri"] in found["next_step"]
    assert "## Steps" in whole["text"]


async def test_with_a_run_entries_are_ranked_by_how_they_fit_it(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await call.planned_run()
        found = await call("hiera_knowledge_search", run_id=run_id, limit=20)
        asked = await call("hiera_knowledge_search", query="vector loops", run_id=run_id)
    assert found["entries"]
    assert all("holds: " in e["why"] or "fails: " in e["why"] or "unknown: " in e["why"] for e in found["entries"])
    assert "holds: platform == cpu (cpu)" in found["entries"][0]["why"]
    entries = [bench.deps.knowledge.entry(e["slug"]) for e in found["entries"] + asked["entries"]]
    assert all(entry.allows_arch("cpu") for entry in entries), "the target of the run is the filter"
    assert "avx-vectorisation" in [e["slug"] for e in asked["entries"]]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"arch": "ampere"}, "Valid: cpu, sm_80"),
        ({"direction": "sideways"}, "control_flow"),
        ({"space": "fortran"}, "cuda_libraries_pytorch"),
        ({"run_id": "r_none"}, "No run 'r_none'"),
    ],
)
async def test_a_filter_that_does_not_exist_is_answered_with_what_does(
    bench: Any, arguments: dict[str, Any], named: str
) -> None:
    async with bench.session() as call:
        assert named in await call.error("hiera_knowledge_search", query="tile", **arguments)


@pytest.mark.parametrize("query", ['"', "***", "NOT", "title:x", "'; drop table lessons", "cp.async AND ("])
async def test_no_query_is_syntax_for_entries_or_lessons(bench: Any, query: str) -> None:
    async with bench.session() as call:
        found = await call("hiera_knowledge_search", query=query)
    assert found["lessons"] == []
