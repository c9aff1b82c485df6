"""The compile cache stays bounded and keeps what is in use."""

import os
from pathlib import Path

from hiera_mcp.sandbox.launcher.pruning import SAFE_S, prune

NOW = 2_000_000_000.0
SIZE = 1 << 20


def build(cache: Path, name: str, size: int, age: float) -> Path:
    box = cache / "builds" / name / "box"
    box.mkdir(parents=True)
    (box / "case0.so").write_bytes(b"x" * size)
    for path in (box, box.parent):
        os.utime(path, (NOW - age, NOW - age))
    return box.parent


def test_the_builds_used_longest_ago_go_first_until_the_rest_fits(tmp_path: Path):
    oldest, old, newest = (build(tmp_path, n, SIZE, SAFE_S * age) for n, age in (("a", 4), ("b", 3), ("c", 2)))
    assert prune(tmp_path, int(2.5 * SIZE), NOW) == 1
    assert not oldest.exists() and old.exists() and newest.exists()


def test_a_build_that_was_used_again_counts_as_new(tmp_path: Path):
    used, other = build(tmp_path, "a", SIZE, SAFE_S * 4), build(tmp_path, "b", SIZE, SAFE_S * 3)
    os.utime(used / "box", (NOW - SAFE_S * 2, NOW - SAFE_S * 2))
    prune(tmp_path, int(1.5 * SIZE), NOW)
    assert used.exists() and not other.exists()


def test_what_may_be_in_use_is_kept_even_above_the_bound(tmp_path: Path):
    fresh = build(tmp_path, "a", 1000, SAFE_S / 2)
    prune(tmp_path, 0, NOW)
    assert fresh.exists()


def test_work_folders_of_a_killed_launcher_are_removed(tmp_path: Path):
    left = tmp_path / "scratch" / "1234"
    left.mkdir(parents=True)
    os.utime(left, (NOW - 2 * SAFE_S, NOW - 2 * SAFE_S))
    assert prune(tmp_path, 1000, NOW) == 1
    assert not left.exists()


def test_what_hostile_code_left_is_removed_however_deep_it_is(tmp_path: Path):
    left = tmp_path / "scratch" / "1234"
    left.mkdir(parents=True)
    (left / "locked").mkdir(mode=0)
    before = os.open(".", os.O_RDONLY)
    try:
        os.chdir(left)
        for _ in range(1500):  # deeper than Python may recurse, longer than a path may be
            os.mkdir("deep")
            os.chdir("deep")
    finally:
        os.chdir(before)
        os.close(before)
    for path in (left / "locked", left / "deep", left):
        os.utime(path, (NOW - 2 * SAFE_S, NOW - 2 * SAFE_S))
    assert prune(tmp_path, SIZE, NOW) == 1
    assert not left.exists()


def test_an_absent_cache_is_no_error(tmp_path: Path):
    assert prune(tmp_path / "absent", 0, NOW) == 0
