"""`hiera-mcp kb search`: the shipped entries and a folder of one's own."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hiera_mcp.cli.main import main

OWN = """---
id: house-rule
title: House rule about quokkas
direction: null
spaces: [cuda]
archs: [sm_80+]
operators: [any]
signature:
  - {signal: waves, op: "<", value: 1}
steps: [Ask first.]
must_move: time
expected: unmeasured
cost: low
sources:
  - {title: t, url: "https://example.org"}
---
"""
Search = Callable[..., int]


@pytest.fixture
def search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Search:
    """Runs `kb search` with a data folder of its own."""
    monkeypatch.setenv("HIERA_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("HIERA_KNOWLEDGE_DIR", raising=False)
    return lambda *words: main(["kb", "search", *words])


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "house-rule.md").write_text(OWN)
    return folder


def test_words_find_shipped_entries_within_the_filters(search: Search, capsys: pytest.CaptureFixture[str]) -> None:
    assert search("softmax", "--arch", "cuda:sm_80", "--space", "cuda", "--json") == 0
    entries = json.loads(capsys.readouterr().out)["entries"]
    assert "online-softmax" in [entry["slug"] for entry in entries]
    assert all(entry["direction"] for entry in entries)  # library entries need a larger space


def test_a_folder_of_own_entries_is_searched_too(search: Search, own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert search("quokkas") == 1
    assert search("quokkas", "--knowledge", str(own)) == 0
    assert "house-rule: House rule about quokkas  (library)" in capsys.readouterr().out


def test_the_environment_names_the_folder_as_well(
    search: Search, own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HIERA_KNOWLEDGE_DIR", str(own))
    assert search("quokkas") == 0
    assert "house-rule" in capsys.readouterr().out


def test_a_broken_own_entry_stops_the_start_and_names_file_and_field(
    search: Search, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (own / "house-rule.md").write_text(OWN.replace('op: "<"', 'op: "<<"'))
    assert search("quokkas", "--knowledge", str(own)) != 0
    assert "house-rule.md: signature[0].op: Input should be" in capsys.readouterr().err


def test_an_unknown_architecture_is_answered_with_the_known_ones(
    search: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    assert search("softmax", "--arch", "ampere") != 0
    assert "Valid: cpu, sm_80" in capsys.readouterr().err
