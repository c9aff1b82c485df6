"""A whole server on the real executor, and what must hold after every fault: nothing runs, nothing lies about, nothing is
locked, the next good candidate passes, the database is intact."""

import os
import shutil
import sqlite3
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from host_rates import with_host_rates
from mcp import Client

from hiera_mcp.deps import open_deps
from hiera_mcp.model.evaluation import Evaluation, NotRun
from hiera_mcp.model.work import EvaluateRequest, Limits
from hiera_mcp.sandbox.child.tree import children, descendants
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.sandbox.local import LocalExecutor
from hiera_mcp.server import create_server
from hiera_mcp.settings import Settings

Answer = dict[str, Any]

REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(64, 64)]

def get_init_inputs():
    return []
"""
GOOD = """
#include "contract.h"
extern "C" int hiera_run(const hiera_inputs *in, const hiera_params *, const hiera_outputs *out, void *) {
    for (int i = 0; i < HIERA_NUMEL_x; ++i) out->out[i] = in->x[i] < 0 ? 0 : in->x[i];
    return 0;
}
"""
SHORT = Limits(compile_s=30, load_s=30, call_s=5, rounds_s=0.3, total_s=60, memory_bytes=2 << 30)
WARM = (b"hiera_mcp.sandbox.child.judge", b"hiera_mcp.sandbox.child.tracer")
"""Programs of ours that may stay for the next candidate."""
OUTSIDE = ("/", "/etc", "/usr", "/opt", "/tmp", "/var/tmp", "/dev/shm", "/run", os.path.expanduser("~"), os.getcwd())


class Hurried(LocalExecutor):
    """The local executor with limits that suit a small task, and the fault that is tried."""

    def __init__(self, cache_dir: Path) -> None:
        super().__init__(cache_dir=cache_dir)
        self.changed: dict[str, dict[str, Any]] = {}
        """Source → limits that differ from those of SHORT."""

    async def evaluate(self, request: EvaluateRequest, notify: Notify) -> Evaluation | NotRun:
        (source,) = request.sources.values()
        limits = SHORT.model_copy(update=self.changed.get(source, {}))
        return await super().evaluate(request.model_copy(update={"limits": limits}), notify)


@dataclass
class Site:
    """A server in this process, with its launcher, its database and one run after another."""

    portal: BlockingPortal
    client: Client
    executor: Hurried
    settings: Settings
    token: str = field(default_factory=lambda: "hiera-fault-" + uuid.uuid4().hex[:12])
    """Part of the name of every file that a candidate tries to leave."""
    contract: str = field(default="", init=False)

    def __post_init__(self) -> None:
        """Its contract is built, so its launcher runs."""
        built = self.call("hiera_contract_build", source=REFERENCE, name="relu", target="cpu", wait_s=100)
        self.contract = built["contract"]["contract_id"]

    def call(self, tool: str, **arguments: Any) -> Answer:
        result = self.portal.call(self.client.call_tool, tool, arguments)
        assert not result.is_error, result.content
        assert result.structured_content is not None
        return result.structured_content

    def evaluate(self, sources: Mapping[str, str], python: bool = False) -> dict[str, Answer]:
        """Name → row of each candidate, from the tool; all are submitted at once, in a run of their own."""
        file = "model_new.py" if python else "cpu_source.cpp"
        numbered = list(sources.items())
        candidates = [{"name": f"c{n}", "sources": {file: text}} for n, (_, text) in enumerate(numbered)]
        run = self._planned("cpp_libraries_pytorch" if python else "cpp")
        answer = self.call("hiera_candidates_evaluate", run_id=run, candidates=candidates, wait_s=100)
        while not answer["results"] and answer["state"] == "running":
            answer = self.call("hiera_job", job_id=answer["job_id"], wait_s=100)["result"]
        return {name: row for (name, _), row in zip(numbered, answer["results"], strict=True)}

    def log(self, row: Answer) -> str:
        """The log of a candidate, as an agent reads it."""
        return str(self.portal.call(self.client.read_resource, row["log_uri"]))

    def launcher(self) -> int:
        return children(self.executor._launcher._process.pid)[0]  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]

    def work_root(self) -> Path:
        """Where this launcher's boxes have their folders."""
        links = [os.readlink(path) for path in Path(f"/proc/{self.launcher()}/fd").iterdir() if path.is_symlink()]
        return Path(next(link for link in links if "hiera-work-" in link))

    def _planned(self, space: str) -> str:
        """A new run whose candidates are in `space`."""
        run: str = self.call("hiera_run_start", contract_id=self.contract)["run_id"]
        self.call("hiera_plan_space", run_id=run, choice=space, reason="what is tried needs it")
        for kind in ("direction", "strategy"):
            self.call(f"hiera_plan_{kind}", run_id=run, choice="recommended")
        return run


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    for tool in ("g++", "bwrap"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")
    folder = Path(tempfile.mkdtemp(prefix="hiera-site-"))  # not pytest's: a box's user must be able to enter it
    folder.chmod(0o755)
    settings = Settings(data_dir=folder / "data", cache_dir=with_host_rates(folder / "cache"))
    with start_blocking_portal("asyncio") as portal:

        async def make() -> Hurried:
            return Hurried(settings.cache_dir)

        executor = portal.call(make)
        server = create_server(lambda: open_deps(settings, executor))
        with portal.wrap_async_context_manager(Client(server)) as client:
            yield Site(portal, client, executor, settings)
    shutil.rmtree(folder)


@pytest.fixture
def aftermath(site: Site) -> Iterator[Site]:
    """The site; when the test is over, all that must hold after a fault is asserted."""
    yield site
    assert left_running(site.launcher()) == []
    assert left_outside(site.token) == []
    assert [path.name for path in site.work_root().iterdir() if path.name.startswith("runner-")] == []
    assert list((site.settings.cache_dir / "scratch").glob("*")) == []
    assert held_locks(site.launcher()) == []
    following = site.evaluate({"good": GOOD})["good"]
    assert following["status"] == "passed", following["reason"]
    assert damage(site.settings.database) == []


def left_running(launcher: int) -> list[bytes]:
    """Command lines of what runs below the launcher, but for the programs of ours that stay warm."""
    lines = [_command_line(pid) for pid in descendants(launcher)]
    return [line for line in lines if line and not any(name in line for name in WARM)]


def left_outside(token: str) -> list[str]:
    """Files that a candidate left on the host."""
    return [f"{folder}/{name}" for folder in OUTSIDE for name in _names(folder) if token in name]


def held_locks(launcher: int) -> list[str]:
    """Lock files of devices that the launcher has open, which is as long as it holds or waits for them."""
    links = [_link(path) for path in Path(f"/proc/{launcher}/fd").iterdir()]
    return [link for link in links if link.endswith((".lock", ".gate"))]


def damage(database: Path) -> list[Any]:
    """What SQLite finds wrong; jobs that are still open count too."""
    with sqlite3.connect(database) as connection:
        (found,) = connection.execute("PRAGMA integrity_check").fetchone()
        broken = connection.execute("PRAGMA foreign_key_check").fetchall()
        jobs = connection.execute("SELECT id, state FROM jobs WHERE state <> 'done'").fetchall()
    return [*([] if found == "ok" else [found]), *broken, *jobs]


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
