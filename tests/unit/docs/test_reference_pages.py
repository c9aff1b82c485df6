"""The generated pages say what the program is."""

import re
import sqlite3
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from hiera_mcp import tools
from hiera_mcp.cli.main import COMMANDS
from hiera_mcp.store import Store

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "scripts" / "reference_pages.py"


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    spec = spec_from_file_location("reference_pages", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def test_they_are_current() -> None:
    command = [sys.executable, str(SCRIPT), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"run python scripts/reference_pages.py\n{done.stdout}{done.stderr}"


def test_a_page_that_is_not_current_is_named(
    pages: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cli.md").write_text("old")
    monkeypatch.setattr(pages, "DOCS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["reference_pages.py", "--check"])
    assert pages.main() == 1
    assert "docs/cli.md is not current" in capsys.readouterr().out
    assert (tmp_path / "cli.md").read_text() == "old"


def test_every_tool_and_command_has_its_section() -> None:
    assert re.findall(r"^## `(hiera_\w+)`$", page("tools.md"), re.MULTILINE) == [tool.name for tool in tools.ALL]
    assert re.findall(r"^## `hiera-mcp (\w+)`$", page("cli.md"), re.MULTILINE) == list(COMMANDS)


def test_every_link_to_a_type_has_its_section() -> None:
    text = page("tools.md")
    linked = set(re.findall(r"\]\(#(\w+)\)", text))
    assert linked
    assert linked <= {name.lower() for name in re.findall(r"^## (\w+)$", text, re.MULTILINE)}


def test_the_tables_and_queries_are_those_of_a_real_database(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "hiera.db", tmp_path / "blobs")
    store.close()
    database = sqlite3.connect(tmp_path / "hiera.db")
    try:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        shown = set(re.findall(r"^## (\w+)$", page("schema.md"), re.MULTILINE))
        assert shown <= tables
        assert all(re.match(r"_|sqlite_|lessons_fts_", name) for name in tables - shown)
        queries = page("schema.md").split("```sql")[1].split("```")[0].split(";\n")
        assert len(queries) >= 3
        for query in queries:
            assert database.execute(query, {"run": "r_none"}).fetchall() == []
    finally:
        database.close()


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"$ref": "#/$defs/RunView"}, "[RunView](#runview)"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string or null"),
        ({"type": "string", "enum": ["a", "b"]}, "`a`, `b`"),
        ({"type": "array", "items": {"type": "number"}, "maxItems": 6}, "list of number (0 to 6)"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "object of integer"),
        ({"type": "integer", "minimum": 1}, "integer (from 1)"),
        ({"type": "string", "minLength": 1}, "string"),
        ({}, "any JSON"),
    ],
)
def test_a_schema_is_told_in_a_few_words(pages: ModuleType, schema: dict[str, object], text: str) -> None:
    assert pages.type_of(schema) == text
