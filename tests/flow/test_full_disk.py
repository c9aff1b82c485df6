"""A disk that fills up while work is under way: clear errors, a server that lives, and work that goes on afterwards."""

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import Any

import pytest

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(which("g++") is None, reason="needs g++ to compile candidates"),
    pytest.mark.skipif(which("unshare") is None or os.geteuid() != 0, reason="only root can mount a small file system"),
    pytest.mark.timeout(280),
]

SCRIPT = Path(__file__).with_name("full_disk.py")
MOUNT = 'mount -t tmpfs -o size=4m tmpfs "$0" && exec "$@"'


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each step answered."""
    small = tmp_path_factory.mktemp("small")
    mountable = subprocess.run(["unshare", "-m", "sh", "-c", MOUNT, str(small), "true"], check=False)
    if mountable.returncode != 0:
        pytest.skip("nothing can be mounted here")
    command = ["unshare", "-m", "sh", "-c", MOUNT, str(small), sys.executable, str(SCRIPT), str(small)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=270, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("step", ["job in flight", "another job", "another run"])
def test_what_cannot_be_stored_ends_in_an_error_that_says_why(steps: dict[str, Any], step: str) -> None:
    assert "full" in steps[step]["error"] or "No space left" in steps[step]["error"]
    assert "Free" in steps[step]["error"]


def test_what_only_reads_still_works(steps: dict[str, Any]) -> None:
    assert steps["status"]["state"] == "open"
    assert steps["guide"]["topic"] == "loop"


def test_once_space_is_freed_the_job_is_closed_and_its_candidate_named(steps: dict[str, Any]) -> None:
    assert steps["job afterwards"]["state"] == "failed"
    assert steps["status afterwards"]["open_jobs"] == []
    assert steps["status afterwards"]["next_step"].startswith("No result yet for c:")


def test_once_space_is_freed_the_same_submission_is_evaluated_in_its_place(steps: dict[str, Any]) -> None:
    answer = steps["evaluated afterwards"]
    lost = steps["status afterwards"]["candidates"]
    assert [row["status"] for row in answer["results"]] == ["passed"]
    assert [row["candidate_id"] for row in answer["results"]] == [row["candidate_id"] for row in lost]
