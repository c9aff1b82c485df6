"""Where a box shares the host's processes, a profiler in it may look into its own ones alone."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiera_mcp.sandbox.child import landlock
from hiera_mcp.sandbox.isolation.binds import child_binds, child_env, python_binds
from hiera_mcp.sandbox.isolation.box import BoxLimits, BoxSpec
from hiera_mcp.sandbox.isolation.landlock import Landlock
from hiera_mcp.sandbox.isolation.process import run

needs_landlock = pytest.mark.skipif(landlock.abi() < landlock.NEEDED_ABI, reason="this kernel's Landlock is too old")
LOOK = """
import ctypes, json, os, subprocess, sys
from hiera_mcp.sandbox.child.host_counters import SOFTWARE, open_event
libc = ctypes.CDLL(None, use_errno=True)
def looks(pid):
    buffer = ctypes.create_string_buffer(8)
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
    ways = {
        "ptrace": lambda: libc.ptrace(0x4206, pid, None, None),
        "perf": lambda: open_event(SOFTWARE, 0, pid)[0],
        "memory": lambda: libc.process_vm_readv(pid, vector, ctypes.c_ulong(1), vector, ctypes.c_ulong(1), ctypes.c_ulong(0)),
    }
    found = {}
    for name, way in ways.items():
        ctypes.set_errno(0)
        found[name] = "yes" if way() >= 0 else os.strerror(ctypes.get_errno())
    return found
own = subprocess.Popen(["sleep", "60"])
print(json.dumps({"own": looks(own.pid), "supervisor": looks(os.getppid()), "other": looks(int(sys.argv[1]))}))
own.kill()
own.wait()
"""


@pytest.fixture
def other() -> Iterator[int]:
    """A process outside of the box."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process.pid
        process.kill()


@needs_landlock
@pytest.mark.parametrize("profiler", [True, False])
async def test_only_the_boxes_own_processes_can_be_looked_into(work: Path, other: int, profiler: bool) -> None:
    spec = BoxSpec(
        argv=(sys.executable, "-P", "-c", LOOK, str(other)),
        work=work,
        limits=BoxLimits(memory_bytes=1 << 30),
        binds=(*python_binds(), *child_binds()),
        env=child_env(),
        profiler=profiler,
    )
    outcome = await run(Landlock(), spec, 30)
    seen = json.loads(outcome.output)
    assert "yes" not in {*seen["supervisor"].values(), *seen["other"].values()}, seen
    assert (seen["own"]["ptrace"] == "yes") == profiler
    if not profiler:
        assert "yes" not in seen["own"].values(), seen
