"""`hiera-mcp kb search`: the shipped entries and a folder of one's own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.cli.kb import lines_of
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


# --- memory -----------------------------------------------------------------------------------------------------------


def exported(folder: Path, run_id: str = "r_1", **changes: Any) -> Path:
    """A file as kb export writes it, with one round."""
    plain = {"origin": "o_1", "run_id": run_id, "round": 1, "task_id": "t", "operator_kind": "gemm", "bound": "memory"}
    place = {"device": "cpu", "space": "cpp", "direction": "parallelism", "candidates": 1, "failures": {"crash": 1}}
    path = folder / f"{run_id}.json"
    rounds = [{**plain, **place, **changes}]
    path.write_text(json.dumps({"format": "hiera-memory", "version": 1, "rounds": rounds, "lessons": []}))
    return path


@pytest.fixture
def kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Search:
    monkeypatch.setenv("HIERA_DATA_DIR", str(tmp_path / "data"))
    return lambda *words: main(["kb", *map(str, words)])


def test_what_was_imported_is_exported_again(kb: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("r_1", "r_2", "r_1"):
        assert kb("import", exported(tmp_path, name)) == 0
    assert kb("export", tmp_path / "out.json") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("1 round and 0 lessons taken over") and said[0].endswith("0 were known")
    assert said[2].startswith("0 rounds") and said[2].endswith("1 were known")
    rounds = json.loads((tmp_path / "out.json").read_text())["rounds"]
    assert [r["run_id"] for r in rounds] == ["r_1", "r_2"]


def test_an_export_goes_to_standard_output_too(kb: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kb("export", "-") == 0
    assert json.loads(capsys.readouterr().out) == {"format": "hiera-memory", "version": 1, "rounds": [], "lessons": []}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no json", "is not JSON"),
        ("[]", "holds no exported memory"),
        ('{"format": "hiera-memory", "version": 7}', "another version of the format"),
        ('{"format": "hiera-memory", "version": 1, "rounds": [{"origin": "o"}]}', "rounds[0].run_id: Field required"),
        ('{"format": "hiera-memory", "version": 1, "rounds": 3}', "rounds: Input should be"),
        ('{"format": "hiera-memory", "version": 1, "extra": 3}', "extra: Extra inputs"),
    ],
)
def test_a_file_that_is_not_an_export_is_refused_with_the_place_at_fault(
    kb: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    assert kb("import", path) == 2
    said = capsys.readouterr().err
    assert says in said and "bad.json" in said


def test_a_round_that_cannot_have_been_is_refused(
    kb: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kb("import", exported(tmp_path, space="cuda")) == 2
    assert "rounds[0]: Value error, space cuda does not exist on cpu" in capsys.readouterr().err


def test_a_missing_file_and_one_that_cannot_be_written_are_named(
    kb: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kb("import", tmp_path / "none.json") == 2
    assert kb("export", tmp_path / "no folder" / "out.json") == 2
    said = capsys.readouterr().err
    assert "none.json cannot be read" in said and "out.json cannot be written" in said


def test_a_lesson_is_printed_with_what_proves_it() -> None:
    lesson = {"id": "l_1", "title": "Threads pay", "text": "Rows over threads.", "proof": ["relu, cpp: passed, 1.5×"]}
    lines = lines_of({"entries": [], "lessons": [lesson]})
    assert lines == ["lesson l_1: Threads pay", "    Rows over threads.", "    - relu, cpp: passed, 1.5×"]
