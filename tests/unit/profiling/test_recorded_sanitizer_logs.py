"""What compute-sanitizer printed on a GPU for each planted defect, read again.

Kernels and expectations are in tests/data/sanitizer; the logs were recorded by scripts/record_sanitizer.py.
"""

import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from hiera_mcp.model.sanitizer import Finding, SanitizerTool
from hiera_mcp.sandbox.profiling.sanitizer_findings import Reader
from hiera_mcp.sandbox.profiling.sanitizer_reports import total

DATA = Path(__file__).parents[2] / "data" / "sanitizer"
PLANTED: list[dict[str, str]] = tomllib.loads((DATA / "planted.toml").read_text())["kernel"]
DEFECTS = [k for k in PLANTED if k["tool"]]
RECORDED = DATA / "recorded"

pytestmark = pytest.mark.skipif(not RECORDED.is_dir(), reason="no logs are recorded yet (scripts/record_sanitizer.py)")


def logs(name: str) -> dict[SanitizerTool, str]:
    """Tool → its log."""
    parts = re.split(r"^==== (\w+) ====$", (RECORDED / f"{name}.log").read_text(), flags=re.MULTILINE)[1:]
    told = dict(zip(parts[::2], parts[1::2], strict=True))
    return {tool: told[tool] for tool in get_args(SanitizerTool) if tool in told}


def read(name: str, tool: SanitizerTool) -> tuple[Finding, ...]:
    source = (DATA / "kernels" / f"{name}.cu").read_text()
    return Reader(tool, {"cuda_source.cu": source}).findings(logs(name)[tool])


def planted_lines(name: str) -> set[int]:
    lines = (DATA / "kernels" / f"{name}.cu").read_text().splitlines()
    return {n for n, line in enumerate(lines, 1) if line.endswith("// planted")}


@pytest.mark.parametrize("planted", DEFECTS, ids=lambda k: k["name"])
def test_a_planted_defect_is_read_with_its_place(planted: dict[str, str]) -> None:
    tool: SanitizerTool = next(t for t in get_args(SanitizerTool) if t == planted["tool"])
    found = [f for f in read(planted["name"], tool) if f.what.startswith(planted["what"])]
    assert [(f.severity, f.space) for f in found[:1]] == [(planted["severity"], planted["space"])], found
    lines = planted_lines(planted["name"])
    assert not lines or (found[0].file == "cuda_source.cu" and found[0].line in lines), found
    assert not lines or found[0].kernel.startswith(planted["name"])


@pytest.mark.parametrize("tool", get_args(SanitizerTool))
def test_nothing_is_read_where_nothing_is_wrong(tool: SanitizerTool) -> None:
    assert read("clean", tool) == ()
    assert total(logs("clean")[tool]) is not None
