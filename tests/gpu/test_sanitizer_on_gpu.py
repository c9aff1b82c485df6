"""compute-sanitizer around a candidate on this GPU: each planted defect is found with its line, and what is right is clean.

Kernels and expectations are in tests/data/sanitizer.
"""

import asyncio
import shutil
import tomllib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, get_args

import pytest
import pytest_asyncio

from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.contracts.build import build_contract
from hiera_mcp.knowledge_base import hardware
from hiera_mcp.model.contract import Contract, Task
from hiera_mcp.model.sanitizer import Finding, Sanitized, SanitizeRequest, SanitizerTool
from hiera_mcp.model.space import Space, spaces_of
from hiera_mcp.model.work import TraceRequest
from hiera_mcp.sandbox.devices import gpus
from hiera_mcp.sandbox.local import LocalExecutor
from hiera_mcp.sandbox.profiling import compute_sanitizer

DATA = Path(__file__).parents[1] / "data" / "sanitizer"
PLANTED: list[dict[str, str]] = tomllib.loads((DATA / "planted.toml").read_text())["kernel"]
DEFECTS = [k for k in PLANTED if k["tool"]]
MODEL = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x):
        square = x.repeat(64, 1)
        return (square.T @ square).softmax(dim=1).sum(dim=1) * 0 + x * 2
"""

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(180),
    pytest.mark.skipif(not gpus(), reason="needs an NVIDIA GPU"),
    pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc"),
    pytest.mark.skipif(compute_sanitizer.find() is None, reason="needs compute-sanitizer"),
    pytest.mark.asyncio(loop_scope="module"),
]


async def silent(message: str, fraction: float | None) -> None:
    """For those who do not want to know."""


class Bench:
    """One launcher, and the contract that all candidates are for."""

    def __init__(self, executor: LocalExecutor, contract: Contract) -> None:
        self._executor = executor
        self._contract = contract

    async def look(
        self, sources: dict[str, str], *tools: SanitizerTool, space: Space | None = None, tool_s: float = 60.0
    ) -> Sanitized:
        """What these tools say of a candidate; all of them when none is named."""
        made = SanitizeRequest(
            contract=self._contract,
            files=render_files(self._contract),
            space=space or spaces_of(self._contract.target)[0],
            sources=sources,
            tools=tools or get_args(SanitizerTool),
            tool_s=tool_s,
        )
        found = await self._executor.sanitize(made, silent)
        if any(r.status == "unsupported" for r in found.results):
            pytest.skip(found.results[0].note)
        return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Bench]:
    executor = LocalExecutor(cache_dir=tmp_path_factory.mktemp("cache"))
    source, gpu = (DATA / "tasks" / "double.py").read_text(), gpus()[0]
    row = hardware.gpu_for(gpu.target, gpu.name)
    found = await executor.trace(TraceRequest(source=source, name="double"), silent)
    about = Task(name="double", source=source)
    contract = build_contract(about, gpu.target, "float32", found, hardware.peaks(row), row.memory_bytes)
    yield Bench(executor, contract)
    await executor.close()


def kernel(name: str) -> dict[str, str]:
    return {"cuda_source.cu": (DATA / "kernels" / f"{name}.cu").read_text()}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def found(bench: Bench) -> dict[str, Sanitized]:
    """What the tool of each defect says of it: builds overlap, the GPU is used in turn."""

    async def look(planted: dict[str, Any]) -> Sanitized:
        return await bench.look(kernel(planted["name"]), planted["tool"])

    results = await asyncio.gather(*(look(planted) for planted in DEFECTS))
    return dict(zip((k["name"] for k in DEFECTS), results, strict=True))


@pytest.mark.parametrize("planted", DEFECTS, ids=lambda k: k["name"])
async def test_a_planted_defect_is_found_with_its_line(planted: dict[str, str], found: dict[str, Sanitized]) -> None:
    name, said = planted["name"], found[planted["name"]]
    wanted: list[Finding] = [f for f in said.findings if f.what.startswith(planted["what"])]
    assert wanted, (said.results, said.findings, said.log[-3000:])
    assert (wanted[0].severity, wanted[0].space) == (planted["severity"], planted["space"])
    text = kernel(name)["cuda_source.cu"].splitlines()
    lines = {n for n, line in enumerate(text, 1) if line.endswith("// planted")}
    assert not lines or (wanted[0].file == "cuda_source.cu" and wanted[0].line in lines), wanted
    assert said.breaks_memory == (planted["tool"] == "memcheck" and planted["severity"] == "error")


async def test_a_candidate_that_is_right_is_clean_by_all_tools(bench: Bench) -> None:
    said = await bench.look(kernel("clean"))
    assert [(r.tool, r.status) for r in said.results] == [(t, "clean") for t in get_args(SanitizerTool)], said.log[
        -3000:
    ]
    assert said.findings == () and said.version


async def test_kernels_of_torch_bring_no_error(bench: Bench) -> None:
    said = await bench.look({"model_new.py": MODEL}, "memcheck", "initcheck", space=Space.CUDA_LIBRARIES_PYTORCH)
    assert [f for f in said.findings if f.severity == "error"] == [], said.log[-3000:]
    assert {r.status for r in said.results} <= {"clean", "findings"}, said.results


async def test_a_tool_that_takes_too_long_says_so_and_the_device_is_free_again(bench: Bench) -> None:
    endless = kernel("clean")["cuda_source.cu"].replace(
        "int i =", "while (*(volatile const float*)x != -1) {}\n    int i =", 1
    )
    said = await bench.look({"cuda_source.cu": endless}, "memcheck", tool_s=15.0)
    assert [r.status for r in said.results] == ["timeout"], said.results
    again = await bench.look(kernel("clean"), "memcheck")
    assert [r.status for r in again.results] == ["clean"], again.log[-3000:]
