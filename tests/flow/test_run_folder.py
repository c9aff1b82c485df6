"""`hiera-mcp run FOLDER` on a small task of a user's, in memory and over HTTP."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed"),
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
    pytest.mark.timeout(200),
]

TASK = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * 2.0 + 1.0

def get_inputs():
    return [torch.randn(256, 1000)]

def get_init_inputs():
    return []
"""

SOURCE = """
#include "contract.h"
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {
  for (int i = 0; i < HIERA_NUMEL_x; ++i) out->out[i] = (in->x[i] > 0.0f ? in->x[i] : 0.0f) * 2.0f + OFFSET;
  return 0;
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "mytask"
    (root / "round1").mkdir(parents=True)
    (root / "task.py").write_text(TASK)
    (root / "round1" / "right.cpp").write_text(SOURCE.replace("OFFSET", "1.0f"))
    (root / "round1" / "wrong.cpp").write_text(SOURCE.replace("OFFSET", "1.1f"))
    return root


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hiera_mcp", "run", str(folder), "--target", "cpu", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


def statuses(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return {row["name"]: row["status"] for row in report["run"]["candidates"]}


def test_a_folder_runs_in_memory_on_the_servers_recommendations(folder: Path, tmp_path: Path) -> None:
    done = run(folder, "--in-memory", "--json", "--data-dir", str(tmp_path / "data"))
    assert statuses(done) == {"right": "passed", "wrong": "wrong_output"}
    assert {d["decided_by"] for d in json.loads(done.stdout)["run"]["decisions"]} == {"server"}


def test_text_output_shows_decisions_table_and_trajectory(folder: Path, tmp_path: Path) -> None:
    done = run(folder, "--data-dir", str(tmp_path / "data"))
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Round 1 space: cpp", done.stdout, re.MULTILINE)
    assert re.search(r"^right \*\s+passed\s+[\d.]+ \S+\s+[\d.]+× \[", done.stdout, re.MULTILINE)
    assert re.search(r"^wrong\s+wrong_output\s+–", done.stdout, re.MULTILINE)
    assert str(tmp_path / "data" / "hiera.db") in done.stdout


def test_a_candidate_for_another_platform_is_refused_before_the_run_starts(folder: Path, tmp_path: Path) -> None:
    (folder / "round1" / "gpu.cu").write_text("// x")
    done = run(folder, "--in-memory", "--data-dir", str(tmp_path / "data"))
    assert done.returncode == 2
    assert "Candidate `gpu` is a *.cu file, but the target is cpu" in done.stderr


@contextlib.contextmanager
def http_server(data_dir: Path, token: str) -> Generator[str]:
    """A server on a free port; yields its URL."""
    command = [sys.executable, "-m", "hiera_mcp", "serve", "--http", "--port", "0", "--data-dir", str(data_dir)]
    env = os.environ | {"HIERA_HTTP_TOKEN": token}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env)
    try:
        assert process.stderr is not None
        text = ""
        while (found := re.search(r"http://[^/\s]+:\d+/mcp", text)) is None:
            line = process.stderr.readline()
            assert line, f"the server ended: {text}"
            text += line.strip()
        yield found[0]
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_a_folder_runs_over_http_with_the_token_and_not_without_it_and_decides_what_it_was_asked_to(
    folder: Path, tmp_path: Path
) -> None:
    with http_server(tmp_path / "data", "s3cret") as url:
        refused = run(folder, "--url", url)
        done = run(folder, "--url", url, "--token", "s3cret", "--json", "--plan", "no-directions", "--no-memory")
    assert refused.returncode == 2
    assert "token" in refused.stderr
    assert statuses(done) == {"right": "passed", "wrong": "wrong_output"}
    report = json.loads(done.stdout)["run"]
    assert report["plan"] == ["no-directions", "no-memory"]
    assert [d["kind"] for d in report["decisions"]] == ["space", "strategy"]
