"""Whatever a forked child does to what it shares with its parent is seen, and what changes nothing is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hiera_mcp

PARENT = """
import fcntl, os, resource, signal, sys, time
from hiera_mcp.sandbox.child.shared_state import SharedState

FOLDER = sys.argv[1]
os.mkdir(FOLDER + "/there")
open(FOLDER + "/there/old", "w").write("old")
os.link(FOLDER + "/there/old", FOLDER + "/there/older")
before = SharedState.now((FOLDER, "/no/such/folder"))
os.mkdir(FOLDER + "/job")
child = os.fork()
if child == 0:
    parent = os.getppid()
    {act}
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
os.system("rm -rf " + FOLDER + "/job")
print(before.holds())
"""
ACTS = {
    "a limit of the parent": "resource.prlimit(parent, resource.RLIMIT_NOFILE, (64, 64))",
    "the parent's processors": "os.sched_setaffinity(parent, {min(os.sched_getaffinity(parent))})",
    "the parent's priority": "os.setpriority(os.PRIO_PROCESS, parent, 19)",
    "the parent's scheduler": "os.sched_setscheduler(parent, os.SCHED_IDLE, os.sched_param(0))",
    "writing without waiting": "fcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL) | os.O_NONBLOCK)",
    "a signal when the pipe moves": "fcntl.fcntl(1, fcntl.F_SETOWN, parent); fcntl.fcntl(1, 10, signal.SIGUSR1)",
    "a small pipe": "fcntl.fcntl(1, 1031, 4096)",
    "a new file": "open(FOLDER + '/new', 'w').close()",
    "a new file below a folder that was there": "open(FOLDER + '/there/new', 'w').close()",
    "other words in a file that was there": "open(FOLDER + '/there/old', 'w').write('new')",
    "other words and the old time": (
        "s = os.stat(FOLDER + '/there/old'); open(FOLDER + '/there/old', 'w').write('new'); "
        "os.utime(FOLDER + '/there/old', ns=(s.st_atime_ns, s.st_mtime_ns))"
    ),
    "another file of the same name": (
        "open(FOLDER + '/x', 'w').write('old'); os.replace(FOLDER + '/x', FOLDER + '/there/old')"
    ),
    "a file that is gone": "os.unlink(FOLDER + '/there/older')",
    "a folder that nobody may enter": "os.chmod(FOLDER, 0o300)",
}
HARMLESS = {
    "nothing": "pass",
    "its own limits, priority and processors": (
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); os.nice(5); "
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    ),
    "its own folder and output": "open(FOLDER + '/job/file', 'w').write('x'); os.write(2, b'said')",
}


def seen_after(act: str, folder: Path) -> str:
    environment = {"PYTHONPATH": str(Path(hiera_mcp.__file__).parent.parent)}
    command = [sys.executable, "-P", "-S", "-c", PARENT.replace("{act}", act), str(folder)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("act", ACTS)
def test_a_change_is_seen(act: str, tmp_path: Path) -> None:
    if act == "the parent's processors" and len(os.sched_getaffinity(0)) == 1:
        pytest.skip("this host has one processor")
    assert seen_after(ACTS[act], tmp_path) == "False"


@pytest.mark.parametrize("act", HARMLESS)
def test_what_changes_nothing_shared_is_not_held_against_anyone(act: str, tmp_path: Path) -> None:
    assert seen_after(HARMLESS[act], tmp_path) == "True"
