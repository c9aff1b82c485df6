"""Boxes for the tests of the isolation backends."""

import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.sandbox.isolation import binds
from hiera_mcp.sandbox.isolation.box import BoxLimits, BoxSpec, Isolation, Outcome
from hiera_mcp.sandbox.isolation.bubblewrap import Bubblewrap
from hiera_mcp.sandbox.isolation.folders import discard
from hiera_mcp.sandbox.isolation.process import run
from hiera_mcp.sandbox.isolation.unsafe import Unsafe

MODEST = BoxLimits(memory_bytes=512 << 20, disk_bytes=64 << 20, output_bytes=1 << 20, processes=32)


@dataclass
class Workbench:
    """A work folder, a backend, and a tag by which the processes of its boxes can be found."""

    backend: Isolation
    work: Path
    tag: str = field(default_factory=lambda: uuid.uuid4().hex)

    def spec(self, *argv: str, limits: BoxLimits = MODEST, **more: Any) -> BoxSpec:
        spec = BoxSpec(argv, self.work, limits, env={"HIERA_TEST_TAG": self.tag})
        return replace(spec, **more)

    def python(self, code: str, **more: Any) -> BoxSpec:
        """The running interpreter in a box, without site-packages."""
        spec = self.spec(sys.executable, "-I", "-S", "-c", code, **more)
        return replace(spec, binds=(*binds.python_binds(), *spec.binds))

    async def shell(self, script: str, timeout_s: float = 20.0, **more: Any) -> Outcome:
        return await run(self.backend, self.spec("sh", "-c", script, **more), timeout_s)

    def left_over(self) -> list[int]:
        """Processes of this test that still run."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        try:
            return self.tag.encode() in Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False


@pytest.fixture
def work() -> Iterator[Path]:
    """Not pytest's tmp_path: that lies in a folder which nobody else may enter."""
    folder = Path(tempfile.mkdtemp(prefix="hiera-test-"))
    yield folder
    discard(folder)


def _bubblewrap() -> Isolation:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    return Bubblewrap()


BACKENDS: dict[str, Callable[[], Isolation]] = {"bubblewrap": _bubblewrap, "unsafe": Unsafe}


@pytest.fixture(params=list(BACKENDS))
def bench(request: pytest.FixtureRequest, work: Path) -> Iterator[Workbench]:
    """A workbench per backend whose processes behave differently; afterwards nothing may be left running."""
    made = Workbench(BACKENDS[request.param](), work)
    yield made
    assert made.left_over() == []


@pytest.fixture
def boxed(work: Path) -> Iterator[Workbench]:
    """A workbench with real isolation."""
    made = Workbench(_bubblewrap(), work)
    yield made
    assert made.left_over() == []
