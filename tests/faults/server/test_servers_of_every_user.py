"""A server that is started by an ordinary user does the same work in boxes that are as tight: with bubblewrap, and with Landlock
where bubblewrap is missing. Root starts it here, because only root can become somebody else."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from host_rates import with_host_rates
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

import hiera_mcp
from hiera_mcp.sandbox.child import landlock
from hiera_mcp.sandbox.isolation.folders import discard
from hiera_mcp.sandbox.isolation.identity import NOBODY, can_read

PYTHON = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
TOOLS = ("g++", "c++filt", "nm", "setpriv", "prlimit", "unshare", "mount", "true", "sleep")
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root"),
    pytest.mark.skipif(
        not os.access(PYTHON, os.X_OK), reason=f"needs {PYTHON}, an interpreter that everybody can reach"
    ),
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++ to compile candidates"),
]

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
WRONG = GOOD.replace("? 0 :", "? 1 :")
CRASHES = GOOD.replace("return 0;", "return *(volatile int *)8;")
READS = '#include "/etc/passwd"\n' + GOOD


class Home:
    """What an ordinary user has: an environment with torch, tools, and a folder of the user's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "venv" / "bin" / "python"
        subprocess.run([PYTHON, "-m", "venv", "--without-pip", folder / "venv"], check=True)
        self._packages = next(path for path in sys.path if path.endswith("site-packages"))
        (folder / "data").mkdir()
        for mine in (folder / "data", with_host_rates(folder / "data" / "cache")):
            os.chown(mine, NOBODY, NOBODY)
        (folder / "tools").mkdir()
        for name in TOOLS:
            if found := shutil.which(name):
                (folder / "tools" / name).symlink_to(found)

    def server(self, bwrap: bool) -> StdioServerParameters:
        """The command of the server as user `nobody`, with or without bubblewrap on its PATH."""
        path = "/usr/bin:/bin" if bwrap else str(self.folder / "tools")
        environment = {
            "PATH": path,
            "HOME": str(self.folder / "data"),
            "PYTHONPATH": str(Path(hiera_mcp.__file__).parent.parent),
            "HIERA_DATA_DIR": str(self.folder / "data"),
            "HIERA_CACHE_DIR": str(self.folder / "data" / "cache"),
        }
        theirs = self.folder / "venv" / "lib" / Path(PYTHON).name / "site-packages"
        show = [
            "--mount",
            "sh",
            "-c",
            'mount --bind "$1" "$2" && shift 2 && exec "$@"',
            "sh",
            self._packages,
            str(theirs),
        ]
        become = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--inh-caps=-all"]
        start = ["env", "-i", *(f"{k}={v}" for k, v in environment.items())]
        argv = [*show, *become, *start, str(self.python), "-P", "-m", "hiera_mcp", "serve"]
        return StdioServerParameters(command="unshare", args=argv, cwd="/")


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    folder = Path(tempfile.mkdtemp(prefix="hiera-home-"))
    folder.chmod(0o755)
    made = Home(folder)
    if not can_read(Path(sys.path[-1]), NOBODY) or not can_read(Path(hiera_mcp.__file__), NOBODY):
        pytest.skip("another user cannot reach this checkout and its environment")
    yield made
    discard(folder)


@asynccontextmanager
async def connected(home: Home, bwrap: bool) -> AsyncGenerator[Client]:
    with (home.folder / "server.log").open("a") as log:
        async with Client(stdio_client(home.server(bwrap), errlog=log), read_timeout_seconds=200) as client:
            yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content or {}


async def statuses(client: Client, sources: dict[str, str]) -> dict[str, str]:
    built = await call(client, "hiera_contract_build", source=REFERENCE, name="relu", target="cpu", wait_s=100)
    run = await call(client, "hiera_run_start", contract_id=built["contract"]["contract_id"])
    for kind in ("space", "direction", "strategy"):
        await call(client, f"hiera_plan_{kind}", run_id=run["run_id"], choice="recommended")
    candidates = [{"name": name, "sources": {"cpu_source.cpp": text}} for name, text in sources.items()]
    answer = await call(client, "hiera_candidates_evaluate", run_id=run["run_id"], candidates=candidates, wait_s=100)
    return {row["name"]: row["status"] for row in answer["results"]}


@pytest.mark.parametrize("backend", ["bubblewrap", "landlock"])
async def test_a_server_of_an_ordinary_user_does_the_same_work(home: Home, backend: str) -> None:
    if backend == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    if backend == "landlock" and landlock.abi() < landlock.NEEDED_ABI:
        pytest.skip("this kernel's Landlock is too old")
    async with connected(home, bwrap=backend == "bubblewrap") as client:
        doctor = str((await client.read_resource("hiera://doctor")).contents)
        assert f'"chosen":"{backend}"' in doctor.replace(" ", "").replace("\\", ""), doctor
        found = await statuses(client, {"good": GOOD, "wrong": WRONG, "crashes": CRASHES, "reads": READS})
    assert found == {"good": "passed", "wrong": "wrong_output", "crashes": "crash", "reads": "compile_error"}
