"""docs/contracts.md names what there is: files, lists, the first words of notes, and files that it links to."""

import re
from pathlib import Path

from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.contracts.summary import LISTS
from hiera_mcp.model.contract import Contract

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "contracts.md").read_text()
NOTES = (ROOT / "sandbox" / "child" / "trace_notes.py").read_text()
LINEAR_RELU = ROOT / "tests" / "unit" / "contracts" / "linear_relu.json"


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[\w-]+)?\)", PAGE)
    assert len(links) > 15
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []


def test_every_file_and_list_of_a_contract_is_named() -> None:
    contract = Contract.model_validate_json(LINEAR_RELU.read_text())
    assert [name for name in (*render_files(contract), *LISTS) if f"`{name}`" not in PAGE] == []


def test_every_subject_of_a_note_has_its_rule() -> None:
    subjects = set(re.findall(r"""f?["']([a-z][a-z -]{2,20}): """, NOTES))
    assert {"mode", "batch norm", "updates"} <= subjects
    assert [s for s in sorted(subjects) if f"| {s} |" not in PAGE] == []
