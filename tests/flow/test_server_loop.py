"""The tools on the real executor, in memory: a contract from a real reference, real compilers, real verdicts."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import which
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.types import TextContent

from hiera_mcp.deps import open_deps
from hiera_mcp.server import create_server
from hiera_mcp.settings import Settings

pytestmark = pytest.mark.skipif(which("g++") is None, reason="needs g++ to compile candidates")

REFERENCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.bias = nn.Parameter(torch.linspace(-1.0, 1.0, 64))
        self.scale = scale

    def forward(self, x):
        return torch.relu(x * self.scale + self.bias)

def get_inputs():
    return [torch.randn(128, 64)]

def get_init_inputs():
    return [0.5]
"""

RIGHT = """
#include "contract.h"
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    for (int i = 0; i < 128; ++i)
        for (int j = 0; j < 64; ++j) {
            float v = in->x[i * 64 + j] * 0.5f + p->bias[j];
            out->OUTPUT[i * 64 + j] = v > 0.0f ? v : 0.0f;
        }
    return 0;
}
"""

Answer = dict[str, Any]
Call = Callable[..., Any]


@asynccontextmanager
async def connected(folder: Path) -> AsyncGenerator[Client]:
    settings = Settings(data_dir=folder / "data")
    async with Client(create_server(lambda: open_deps(settings))) as client:
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> Answer:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


async def build(client: Client, **arguments: Any) -> Answer:
    answer = await call(client, "hiera_contract_build", target="cpu", wait_s=120, **arguments)
    contract: Answer = answer["contract"]
    return contract


async def test_a_candidate_is_checked_without_a_verdict(tmp_path: Path) -> None:
    path = tmp_path / "scaled_relu.py"
    path.write_text(REFERENCE)
    async with connected(tmp_path) as client:
        contract = await build(client, path=str(path))
        assert contract["task"] == "scaled_relu"
        assert contract["parameters"][0].startswith("bias: float32[64]")
        assert contract["floor"]["seconds"] > 0
        assert await client.read_resource(contract["files"]["groundtruth.py"])

        run_id = (await call(client, "hiera_run_start", contract_id=contract["contract_id"], rounds=1))["run_id"]
        await call(client, "hiera_plan_space", run_id=run_id, choice="recommended")
        right = RIGHT.replace("OUTPUT", output_of(contract))
        texts = {"right": right, "broken": right.replace("return 0;", "return 0")}
        found = {n: await check(client, run_id, n, text) for n, text in texts.items()}
        status = await call(client, "hiera_run_status", run_id=run_id)
    assert found["right"]["ok"]
    assert not found["broken"]["ok"]
    assert found["broken"]["build"]["diagnostics"][0]["line"] == 9
    assert status["candidates"] == []


async def check(client: Client, run_id: str, name: str, text: str) -> Answer:
    sources = {"cpu_source.cpp": text}
    return await call(client, "hiera_candidate_check", run_id=run_id, name=name, sources=sources, wait_s=120)


def output_of(contract: Answer) -> str:
    """The name of the only output, from the contract's line for its case."""
    return str(contract["cases"][0]).rpartition("-> ")[2].partition(":")[0]


async def test_a_bad_reference_is_an_error_that_says_what_to_change(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        text = await refused(client, "hiera_contract_build", source="import no_such_module\n", target="cpu", wait_s=120)
    assert "no_such_module" in text
    assert "Error executing tool" not in text


async def test_the_same_reference_gives_the_same_contract(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        one = await build(client, source=REFERENCE, name="t")
        two = await build(client, source=REFERENCE, name="t")
        other = await build(client, source=REFERENCE, name="t", precision="float16")
    assert one["contract_id"] == two["contract_id"] != other["contract_id"]


async def test_cancelling_a_build_frees_the_server_for_the_next_one(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        endless = await call(client, "hiera_contract_build", source="while True: pass\n", target="cpu", wait_s=2)
        assert endless["state"] == "running"
        job = await call(client, "hiera_job", job_id=endless["job_id"], action="cancel")
        assert job["state"] == "cancelled"
        with anyio.fail_after(100):
            assert (await build(client, source=REFERENCE))["contract_id"]
