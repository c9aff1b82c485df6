"""Every shipped entry is valid, legal where it says it is, and sourced."""

from pathlib import Path

import pytest

from hiera_mcp.errors import RequestError
from hiera_mcp.knowledge_base.entries import entries_in, packaged_entries, parse_entry
from hiera_mcp.knowledge_base.hardware import rows
from hiera_mcp.model.knowledge import Entry, arch_matches
from hiera_mcp.model.space import Direction, Space, spaces_of
from hiera_mcp.planning.legality import illegal_words

ENTRIES = packaged_entries()
FOLDERS = Path(__file__).parents[3] / "knowledge_base" / "entries"

VALID = """---
id: my-entry
title: My entry
direction: parallelism
spaces: [cuda]
archs: [sm_80+]
operators: [gemm]
signature:
  - {signal: waves, op: "<", value: 1}
steps: [Do it.]
must_move: waves
expected: rises
cost: low
sources:
  - {title: t, url: "https://example.org"}
---
Text.
"""


def test_all_directions_libraries_cpu_and_both_gpu_generations_are_covered() -> None:
    directions = {e.direction for e in ENTRIES}
    assert directions == {*Direction, None}
    for arch in ("cpu", "sm_80", "sm_90a"):
        for direction in Direction:
            assert any(e.direction is direction and e.allows_arch(arch) for e in ENTRIES), (arch, direction)
    assert any(e.archs == ("sm_90a",) for e in ENTRIES)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.id)
def test_an_entry_lies_in_the_folder_of_its_direction(entry: Entry) -> None:
    assert (FOLDERS / (entry.direction or "libraries") / f"{entry.id}.md").is_file()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.id)
def test_the_steps_of_an_entry_are_legal_wherever_it_may_be_proposed(entry: Entry) -> None:
    targets = ["cpu", *dict.fromkeys(t for row in rows() for t in row.default_for)]
    text = "\n".join([entry.title, *entry.steps, *entry.parameters.values()])
    checked = 0
    for target in targets:
        arch = target.partition(":")[2] or "cpu"
        for space in spaces_of(target):
            if entry.allows_arch(arch) and entry.allows_space(space):
                assert illegal_words(text, space, target) is None
                checked += 1
    assert checked > 0


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.id)
def test_an_entry_cites_sources_over_https(entry: Entry) -> None:
    assert all(source.url.startswith("https://") for source in entry.sources)


@pytest.mark.parametrize(
    ("pattern", "arch", "expected"),
    [
        ("cuda", "sm_75", True),
        ("cuda", "cpu", False),
        ("cpu", "cpu", True),
        ("sm_80+", "sm_90a", True),
        ("sm_80+", "sm_75", False),
        ("sm_80+", "cpu", False),
        ("sm_90+", "sm_100a", True),
        ("sm_90a", "sm_90a", True),
        ("sm_90a", "sm_90", False),
        ("sm_90a", "sm_100a", False),
        ("sm_80", "sm_80", True),
        ("sm_80", "sm_86", False),
    ],
)
def test_architectures_match_by_number_and_suffix(pattern: str, arch: str, expected: bool) -> None:
    assert arch_matches(pattern, arch) is expected


def test_a_space_implies_the_larger_ones_of_its_platform() -> None:
    entry = parse_entry(VALID.replace("spaces: [cuda]", "spaces: [cuda_libraries]"), "f")
    assert [entry.allows_space(s) for s in Space] == [False, True, True, False, False, False]


def test_a_valid_file_is_read_with_its_body() -> None:
    entry = parse_entry(VALID, "f")
    assert (entry.id, entry.body, entry.kind) == ("my-entry", "Text.", "technique")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("---\nid", "id", "no YAML front matter"),
        ("steps: [Do it.]", "steps: []", "steps"),
        ("signal: waves", "signal: moon_phase", "moon_phase"),
        ("operators: [gemm]", "operators: [matmul]", "matmul"),
        ("archs: [sm_80+]", "archs: [ampere]", "ampere"),
        ("archs: [sm_80+]", "archs: [cpu]", "disagree about"),
        ("spaces: [cuda]", "spaces: [cuda, cuda_libraries]", "smallest"),
        ("id: my-entry", "id: My Entry", "lower-case"),
        ("must_move: waves", "must_move: luck", "luck"),
        ("cost: low", "cost: cheap", "cost"),
        ('url: "https', 'link: "https', "sources"),
        ("title: My entry", "title: [", "f: "),
    ],
)
def test_a_broken_file_is_refused_with_its_name_and_fault(old: str, new: str, says: str) -> None:
    assert old in VALID
    with pytest.raises(RequestError, match=says) as caught:
        parse_entry(VALID.replace(old, new, 1), "f")
    assert str(caught.value).startswith("f: ")


def test_a_folder_of_own_entries_is_read_recursively(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "my-entry.md").write_text(VALID)
    assert [e.id for e in entries_in(tmp_path)] == ["my-entry"]


def test_a_file_must_be_called_like_its_entry(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text(VALID)
    with pytest.raises(RequestError, match="must be called"):
        entries_in(tmp_path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="does not exist"):
        entries_in(tmp_path / "none")
