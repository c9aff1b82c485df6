"""A server whose data folder is on a small file system that fills up and is freed again; run by test_full_disk.py.

Prints one JSON object: what each step answered.
"""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.types import TextContent

from hiera_mcp.deps import open_deps
from hiera_mcp.server import create_server
from hiera_mcp.settings import Settings

REFERENCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2.0
def get_inputs():
    return [torch.randn(64, 64)]
def get_init_inputs():
    return []
"""
SOURCE = """
#include "contract.h"
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {
    for (int i = 0; i < HIERA_NUMEL_x; ++i) out->out[i] = in->x[i] * 2.0f;
    return 0;
}
"""


class Session:
    """Calls tools and keeps what an agent reads."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self.client.call_tool(tool, arguments)
        text = "".join(block.text for block in result.content if isinstance(block, TextContent))
        return {"error": text} if result.is_error else dict(result.structured_content or {})


def fill(folder: Path) -> Path:
    """A file that takes all space that is left."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                continue
    return filler


async def main(folder: Path) -> None:
    async with Client(create_server(lambda: open_deps(Settings(data_dir=folder / "data")))) as client:
        call = Session(client)
        contract = await call("hiera_contract_build", source=REFERENCE, name="double", target="cpu", wait_s=120)
        run = await call("hiera_run_start", contract_id=contract["contract"]["contract_id"])
        run_id = run["run_id"]
        for kind in ("space", "direction", "strategy"):
            await call(f"hiera_plan_{kind}", run_id=run_id, choice="recommended")
        candidates = [{"name": "c", "sources": {"cpu_source.cpp": SOURCE}}]
        started = await call("hiera_candidates_evaluate", run_id=run_id, candidates=candidates, wait_s=0)
        filler = fill(folder)
        steps = {
            "job in flight": await call("hiera_job", job_id=started["job_id"], wait_s=200),
            "another job": await call("hiera_candidates_evaluate", run_id=run_id, candidates=candidates, wait_s=200),
            "another run": await call("hiera_run_start", contract_id=run["contract_id"], goal="x" * 2000),
            "status": await call("hiera_run_status", run_id=run_id),
            "guide": await call("hiera_guide"),
        }
        filler.unlink()
        while (await call("hiera_job", job_id=started["job_id"], action="status"))["state"] in ("queued", "running"):
            await anyio.sleep(0.1)
        steps["job afterwards"] = await call("hiera_job", job_id=started["job_id"], action="status")
        with anyio.fail_after(60):
            while (await call("hiera_run_status", run_id=run_id))["open_jobs"]:
                await anyio.sleep(0.2)
        steps["status afterwards"] = await call("hiera_run_status", run_id=run_id)
        steps["evaluated afterwards"] = await call(
            "hiera_candidates_evaluate", run_id=run_id, candidates=candidates, wait_s=200
        )
    sys.stdout.write(json.dumps(steps))


anyio.run(main, Path(sys.argv[1]))
