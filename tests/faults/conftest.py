"""Scripts that run in a process of their own, so that it can be killed."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hiera_mcp
from hiera_mcp.sandbox.isolation.folders import discard

PRELUDE = """
import asyncio, signal, sys
from pathlib import Path
from hiera_mcp.sandbox.isolation.box import BoxLimits, BoxSpec
from hiera_mcp.sandbox.isolation.{module} import {backend} as Backend
from hiera_mcp.sandbox.isolation.process import run, start
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in what it starts in the background
LIMITS = BoxLimits(memory_bytes=512 << 20)
def spec(script):
    return BoxSpec(("sh", "-c", script), Path(sys.argv[1]), LIMITS, env={{"HIERA_TEST_TAG": sys.argv[2]}})
"""
BACKENDS = {"bubblewrap": ("bubblewrap", "Bubblewrap"), "unsafe": ("unsafe", "Unsafe")}


class Spawner:
    """Starts scripts that start boxes, and finds what is left of them."""

    def __init__(self, backend: str, work: Path) -> None:
        module, name = BACKENDS[backend]
        self._prelude = PRELUDE.format(module=module, backend=name)
        self._work = work
        self.tag = uuid.uuid4().hex
        self._started: list[subprocess.Popen[str]] = []

    def start(self, script: str) -> "subprocess.Popen[str]":
        environment = {**os.environ, "PYTHONPATH": str(Path(hiera_mcp.__file__).parent.parent)}
        command = [sys.executable, "-P", "-c", self._prelude + script, str(self._work), self.tag]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        self._started.append(process)
        return process

    def end(self) -> None:
        """Leave nothing to the tests that follow, whatever happened in this one."""
        for process in self._started:
            with process:
                process.kill()

    def running(self) -> list[int]:
        """Boxed processes; the spawner itself has the tag on its command line only."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._is_boxed(pid)]

    def wait_until(self, holds: Callable[[], bool], seconds: float = 10.0) -> bool:
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True

    def _is_boxed(self, pid: int) -> bool:
        try:
            return f"HIERA_TEST_TAG={self.tag}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False


@pytest.fixture(params=list(BACKENDS))
def spawner(request: pytest.FixtureRequest) -> Iterator[Spawner]:
    if request.param == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    work = Path(tempfile.mkdtemp(prefix="hiera-test-"))
    spawner = Spawner(request.param, work)
    yield spawner
    spawner.end()
    discard(work)
