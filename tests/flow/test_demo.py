"""`hiera-mcp demo`, as a user starts it: a real server over stdio, a real sandbox, a real database."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed"),
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
    pytest.mark.timeout(300),
]


def demo(data_dir: Path, *words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hiera_mcp", "demo", "--data-dir", str(data_dir), "--target", "cpu", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=env)


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def done(data_dir: Path) -> subprocess.CompletedProcess[str]:
    """One run of the demo that all tests look at."""
    return demo(data_dir, "--json")


@pytest.fixture(scope="module")
def report(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_each_kind_of_verdict_is_seen_and_the_best_passed(report: dict[str, Any]) -> None:
    status = {row["name"]: row["status"] for row in report["run"]["candidates"]}
    assert status == {
        "fused_rows": "passed",
        "fused_rows_hoisted": "compile_error",
        "fused_rows_tanh": "wrong_output",
        "blas_dot": "invalid_space",
        "simd_erf": "passed",
        "simd_erf_lanes": "passed",
        "simd_erf_lanes16": "wrong_output",
    }
    best = report["run"]["best"]
    assert best["name"] in ("simd_erf", "simd_erf_lanes")
    assert best["margin"] < 1
    assert best["speedup"]["low"] <= best["speedup"]["median"] <= best["speedup"]["high"]


def test_only_candidates_that_passed_have_times(report: dict[str, Any]) -> None:
    for row in report["run"]["candidates"]:
        assert (row["time_s"] is not None) == (row["status"] == "passed")


def test_the_wrong_ones_are_caught_by_a_margin_above_one(report: dict[str, Any]) -> None:
    margins = [row["margin"] for row in report["run"]["candidates"] if row["status"] == "wrong_output"]
    assert all(margin is None or margin > 1 for margin in margins)
    assert any(margin is not None for margin in margins)


def test_each_round_has_three_decisions_with_reasons(report: dict[str, Any]) -> None:
    decisions = [(d["round"], d["kind"]) for d in report["run"]["decisions"]]
    assert decisions == [(n, kind) for n in (1, 2) for kind in ("space", "direction", "strategy")]
    assert all(d["reason"] for d in report["run"]["decisions"])


def test_the_database_holds_every_decision_candidate_verdict_and_time(report: dict[str, Any]) -> None:
    with sqlite3.connect(report["run"]["database"]) as database:
        text = "\n".join(database.iterdump())
    for decision in report["run"]["decisions"]:
        assert decision["decision_id"] in text
    for row in report["run"]["candidates"]:
        assert row["candidate_id"] in text
        assert row["status"] in text
        if row["time_s"] is not None:
            assert repr(row["time_s"]["median"]) in text


def test_the_winner_is_exported(report: dict[str, Any]) -> None:
    names = {path.name for path in Path(report["export_dir"]).rglob("*") if path.is_file()}
    assert {"cpu_source.cpp", "contract.h"} <= names


def test_nothing_is_left_running(done: subprocess.CompletedProcess[str], data_dir: Path) -> None:
    assert done.returncode == 0
    mark = f"HIERA_DATA_DIR={data_dir}".encode()
    left = [path for path in Path("/proc").glob("[0-9]*/environ") if mark in _bytes(path)]
    assert left == []


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # of another user, or gone by now


def test_a_recorded_run_is_shown_again(report: dict[str, Any], data_dir: Path) -> None:
    command = [sys.executable, "-m", "hiera_mcp", "runs", "--data-dir", str(data_dir)]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    run_id = report["run"]["run_id"]
    assert run_id in listed
    shown = subprocess.run([*command, run_id], capture_output=True, text=True, timeout=60, check=True).stdout
    assert all(row["name"] in shown for row in report["run"]["candidates"])
    assert report["run"]["best"]["name"] in shown


@pytest.fixture
def tools() -> Generator[Path]:
    """An empty folder for PATH that every user may enter: the sandbox starts its programs without privileges."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize(("missing", "package"), [("g++", "g++"), ("bwrap", "bubblewrap")])
def test_a_missing_tool_is_one_line_that_says_what_to_install(
    missing: str, package: str, tools: Path, tmp_path: Path
) -> None:
    for name in {"g++", "bwrap", "prlimit", "as", "ld"} - {missing}:
        (tools / name).symlink_to(str(shutil.which(name)))
    done = demo(tmp_path / "data", env=os.environ | {"PATH": str(tools)})
    if done.returncode == 0:
        pytest.skip(f"{missing} is found outside PATH, or another backend isolates here")
    assert done.returncode == 2
    assert package in done.stderr
    assert "install" in done.stderr
    assert done.stderr.count("\n") == 1
