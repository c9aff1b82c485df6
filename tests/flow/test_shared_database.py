"""Several servers on one database: they work side by side, and what one loses by kill -9 the other knows."""

import os
import re
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from shutil import which
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.types import TextContent

from hiera_mcp.client.connect import over_stdio

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(which("g++") is None, reason="needs g++ to compile candidates"),
    pytest.mark.timeout(280),
]

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
ENDLESS = SOURCE.replace("return 0;", 'for (;;) __asm__ volatile("");')
PATIENCE_S = 20.0

Answer = dict[str, Any]


async def call(client: Client, tool: str, **arguments: Any) -> Answer:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, "".join(b.text for b in result.content if isinstance(b, TextContent))
    return result.structured_content or {}


async def planned(client: Client) -> str:
    """A run that is ready for candidates."""
    built = await call(client, "hiera_contract_build", source=REFERENCE, name="double", target="cpu", wait_s=120)
    run = await call(client, "hiera_run_start", contract_id=built["contract"]["contract_id"])
    for kind in ("space", "direction", "strategy"):
        await call(client, f"hiera_plan_{kind}", run_id=run["run_id"], choice="recommended")
    return run["run_id"]


async def evaluate(client: Client, run_id: str, texts: Mapping[str, str], wait_s: float = 200) -> Answer:
    candidates = [{"name": n, "sources": {"cpu_source.cpp": t}} for n, t in texts.items()]
    return await call(client, "hiera_candidates_evaluate", run_id=run_id, candidates=candidates, wait_s=wait_s)


@asynccontextmanager
async def server(folder: Path) -> AsyncGenerator[Client]:
    with (folder / "server.log").open("a") as log:
        async with over_stdio(os.environ | {"HIERA_DATA_DIR": str(folder / "data")}, log) as client:
            yield client


def children(pid: int) -> list[int]:
    return [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


def below(pid: int) -> list[int]:
    """All processes below one."""
    found = children(pid)
    return found + [deep for child in found for deep in below(child)]


def running(pids: list[int]) -> list[int]:
    """Those that are neither gone nor zombies."""
    found: list[int] = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        found += [pid] if state != "Z" else []
    return found


async def test_two_servers_evaluate_at_once_and_both_finish(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(server(tmp_path)) for _ in range(2)]
        answers: dict[int, Answer] = {}

        async def work(n: int) -> None:
            run_id = await planned(clients[n])
            await evaluate(clients[n], run_id, {f"right{n}": SOURCE, f"wrong{n}": SOURCE.replace("2.0f", "2.5f")})
            answers[n] = await call(clients[n], "hiera_run_finish", run_id=run_id)

        async with anyio.create_task_group() as group:
            for n in range(2):
                group.start_soon(work, n)
        seen = await call(clients[0], "hiera_run_status", run_id=answers[1]["run"]["run_id"])
    for n in range(2):
        statuses = {row["name"]: row["status"] for row in answers[n]["run"]["candidates"]}
        assert statuses == {f"right{n}": "passed", f"wrong{n}": "wrong_output"}
    assert seen["state"] == "finished"


async def test_what_a_killed_server_committed_is_kept_and_what_it_lost_is_named(tmp_path: Path) -> None:
    before = set(children(os.getpid()))
    async with server(tmp_path) as witness:
        watching = set(children(os.getpid())) - before
        processes, run_id, job_id = await killed_in_mid_evaluation(tmp_path, before | watching)
        with anyio.fail_after(PATIENCE_S):
            while running(processes):
                await anyio.sleep(0.05)
        seen = await call(witness, "hiera_run_status", run_id=run_id)
        job = await call(witness, "hiera_job", job_id=job_id, wait_s=200)
        async with server(tmp_path) as new:
            fresh = await call(new, "hiera_run_status", run_id=run_id)
            again = await evaluate(new, run_id, {"endless": ENDLESS}, wait_s=0)
            await call(new, "hiera_job", job_id=again["job_id"], action="cancel")
            after = await call(new, "hiera_run_status", run_id=run_id)
    assert job["state"] == "interrupted"
    assert "Submit the work again" in str(job["error"])
    for status in (seen, fresh):
        rows = {row["name"]: row for row in status["candidates"]}
        assert (rows["right"]["status"], rows["endless"]["status"]) == ("passed", "not_run")
        assert "cut off" in rows["endless"]["reason"]
        assert status["best"]["name"] == "right"
        assert status["open_jobs"] == []
        assert status["next_step"].startswith("No result yet for endless: hiera_candidates_evaluate(")
    assert len(after["candidates"]) == 2, "the candidate is taken up again in its place"


async def killed_in_mid_evaluation(folder: Path, others: set[int]) -> tuple[list[int], str, str]:
    """Start a server, let it finish one candidate, kill -9 it in the next: its processes, the run, the lost job."""
    found: list[tuple[list[int], str, str]] = []
    try:
        async with server(folder) as client:
            run_id = await planned(client)
            await evaluate(client, run_id, {"right": SOURCE})
            job_id = (await evaluate(client, run_id, {"endless": ENDLESS}, wait_s=0))["job_id"]
            with anyio.fail_after(PATIENCE_S):
                while not re.match("endless: (?!compiling|waiting|getting)", await message(client, job_id)):
                    await anyio.sleep(0.05)
            (pid,) = set(children(os.getpid())) - others
            found.append(([pid, *below(pid)], run_id, job_id))
            os.kill(pid, signal.SIGKILL)
    except BaseExceptionGroup:
        assert found, "the server broke before it was killed"
    return found[0]


async def message(client: Client, job_id: str) -> str:
    return str((await call(client, "hiera_job", job_id=job_id, action="status"))["message"])
