"""docs/planning.md shows what the rubrics say of the shipped tasks."""

from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hiera_mcp.model.work import Trace
from hiera_mcp.planning.tables import task_table

ROOT = Path(__file__).resolve().parents[3]


def scripts() -> Any:
    spec = spec_from_file_location("planning_tables", ROOT / "scripts" / "planning_tables.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_scores_of_the_shipped_tasks_are_current(trace: Callable[..., Trace]) -> None:
    made = scripts()
    evidence: dict[str, Any] = {}
    for name in made.tasks():
        request = made.request_of(name)
        options = request.model_dump(include={"probe_bytes", "probe_s"})
        evidence[name] = made.known(request, trace(request.source, **options))
    assert len(evidence) >= 7
    page = (ROOT / "docs" / "planning.md").read_text(encoding="utf-8")
    assert task_table(evidence) in page, "run: python scripts/planning_tables.py --tasks"
