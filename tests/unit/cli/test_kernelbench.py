"""`hiera-mcp contract build --kernelbench`: on a small tree of tasks, with the real server and tracer."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hiera_mcp.cli.kernelbench import bar, closing, time_left
from hiera_mcp.cli.main import main
from hiera_mcp.client.batch import Row
from hiera_mcp.client.batch_summary import as_json, as_markdown

TASK = """
import torch
class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.fc = torch.nn.Linear(n, n)
    def forward(self, x):
        return torch.relu(self.fc(x))
def get_inputs():
    return [torch.rand(4, 8)]
def get_init_inputs():
    return [8]
"""
LONG = "_of_many_words" * 8
BROKEN = TASK.replace("torch.relu(self.fc(x))", "self.nothing(x)")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Three tasks in two levels; one of them cannot become a contract."""
    for name, text in {"level1/1_First": TASK, "level1/2_Broken": BROKEN, f"level2/1_Other{LONG}": TASK}.items():
        path = tmp_path / "kb" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "kb"


Build = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def build(tree: Path, tmp_path: Path) -> Build:
    if not shutil.which("bwrap"):
        pytest.skip("needs bwrap")

    def start(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "hiera_mcp", "contract", "build", "--kernelbench", str(tree), *words]
        command += ["--target", "cpu", "--out", str(tmp_path / "out"), "--data-dir", str(tmp_path / "data")]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)

    return start


def wait_for(path: Path, process: "subprocess.Popen[str]") -> None:
    while not path.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def test_a_killed_batch_goes_on_where_it_was_and_failures_are_listed(build: Build, tmp_path: Path) -> None:
    first = tmp_path / "out" / "level1" / "1_First" / "built.json"
    killed = build("--all", "--level", "1,2", "--jobs", "1")
    wait_for(first, killed)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    before = first.stat().st_mtime_ns

    second = build("--level", "1,2")
    out, err = second.communicate(timeout=100)
    assert second.returncode == 1, out + err
    assert first.stat().st_mtime_ns == before
    assert "1 failed:" in out and "level1/2_Broken" in out and "nothing" in out
    assert "level1/2_Broken: failed:" in err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert [(v["level"], v["built"], v["failed"]) for v in summary["levels"]] == [(1, 1, 1), (2, 1, 0)]
    assert [bool(t["contract_id"]) for t in summary["tasks"]] == [True, False, True]
    assert (tmp_path / "out" / "level2" / f"1_Other{LONG}" / "contract.h").is_file()
    assert not (tmp_path / "out" / "level1" / "2_Broken" / "built.json").exists()


def test_a_folder_that_was_changed_is_built_again_and_ctrl_c_says_how_to_go_on(
    build: Build, tree: Path, tmp_path: Path
) -> None:
    (tree / "level1" / "3_Slow.py").write_text(f"import time\ntime.sleep(60)\n{TASK}")
    folder = tmp_path / "out" / "level1" / "1_First"
    assert build("--task", "1/1", "--json").wait(100) == 0
    (folder / "contract.h").write_text("spoilt")
    stopped = build("--task", "1/1", "--task", "level1/3")
    while (folder / "contract.h").read_text() == "spoilt":
        assert stopped.poll() is None, stopped.communicate()
        time.sleep(0.02)
    stopped.send_signal(signal.SIGINT)
    _, err = stopped.communicate(timeout=60)
    assert stopped.returncode == 130
    assert "of 2 are done. The same command goes on from there." in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--kernelbench", "."], "--out DIR"),
        (["--kernelbench", ".", "--out", "o"], "--all, --level 1,2 or --task 2/76"),
        (["--kernelbench", ".", "--out", "o", "--all", "--jobs", "0"], "Ask for 1 or more"),
        (["--kernelbench", "missing", "--out", "o", "--all"], "There is no folder missing"),
        (["task.py", "--kernelbench", "."], "one of a reference file and --kernelbench"),
        ([], "one of a reference file and --kernelbench"),
        (["--kernelbench", "http://127.0.0.1:9/rows", "--out", "o", "--all"], "Check the network"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_started(
    words: list[str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["contract", "build", *words]) == 2
    assert expected in capsys.readouterr().err


def test_the_bar_counts_says_failures_and_time_left() -> None:
    assert bar(12, 48, 1, 200.0, "level1/12_X") == "██████░░░░░░░░░░░░░░░░░░ 12/48, 1 failed, 3:20 left, level1/12_X"
    assert bar(0, 0, 0, None, "starting").endswith(" 0/0, starting")
    assert bar(2, 2, 0, 0.0, "x") == f"{'█' * 24} 2/2, x"


def test_the_time_left_follows_the_pace_of_what_was_built() -> None:
    assert time_left(built=4, missing=6, seconds=8.0) == 12.0
    assert time_left(built=0, missing=6, seconds=8.0) is None


def test_the_summary_holds_figures_and_errors_and_keeps_its_tables_whole() -> None:
    rows = [
        Row(task="level1/1_A", level=1, contract_id="c_1", flops=2e9, notes=("a | b",), seconds=1.5),
        Row(task="level1/2_B", level=1, error="Line 3\nis wrong", seconds=0.5),
    ]
    text = as_markdown(rows)
    assert "| 1 | 1 | 1 | 2.0 |" in text
    assert "| level1/1_A | c_1 | 0 | 0 | 2e+09 |" in text and "a \\| b" in text
    assert "| level1/2_B | Line 3 is wrong |" in text
    assert json.loads(as_json(rows))["tasks"][0]["flops"] == 2e9
    assert any("level1/2_B: Line 3" in line for line in closing(rows, Path("out")))
