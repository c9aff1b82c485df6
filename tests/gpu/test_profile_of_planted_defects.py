"""Each planted defect, profiled on this GPU as a client would: what bounds it, which direction comes first, and why.

Kernels, tasks and expectations are in tests/data/profiles; they are made for an H200. The summary is committed as JSON
(benchmarks/results/planted_defects.json) by scripts/record_profiles.py.
"""

import shutil
import tomllib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.contracts.build import build_contract
from hiera_mcp.knowledge_base import hardware
from hiera_mcp.model.contract import Contract, Task
from hiera_mcp.model.evaluation import Evaluation
from hiera_mcp.model.space import spaces_of
from hiera_mcp.model.work import EvaluateRequest, Limits, ProfileRequest, TraceRequest
from hiera_mcp.sandbox.devices import gpus
from hiera_mcp.sandbox.local import LocalExecutor
from hiera_mcp.sandbox.profiling import nsight

DATA = Path(__file__).parents[1] / "data" / "profiles"
PLANTED: list[dict[str, str]] = tomllib.loads((DATA / "planted.toml").read_text())["kernel"]
STRONG = 3

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(120),
    pytest.mark.skipif(not gpus() or "H200" not in gpus()[0].name, reason="needs an NVIDIA H200"),
    pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc"),
    pytest.mark.skipif(nsight.find() is None, reason="needs Nsight Compute"),
    pytest.mark.asyncio(loop_scope="module"),
]


async def silent(message: str, fraction: float | None) -> None:
    """For those who do not want to know."""


class Bench:
    """One launcher, and the contracts that were built with it."""

    def __init__(self, executor: LocalExecutor) -> None:
        self.executor = executor
        self._contracts: dict[str, Contract] = {}

    async def contract(self, task: str, precision: Any) -> Contract:
        if task not in self._contracts:
            source = (DATA / "tasks" / f"{task}.py").read_text()
            found = await self.executor.trace(TraceRequest(source=source, name=task, precision=precision), silent)
            row, about = hardware.gpu_for(gpus()[0].target, gpus()[0].name), Task(name=task, source=source)
            contract = build_contract(about, row.target, precision, found, hardware.peaks(row), row.memory_bytes)
            self._contracts[task] = contract
        return self._contracts[task]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Bench]:
    executor = LocalExecutor(cache_dir=tmp_path_factory.mktemp("cache"))
    yield Bench(executor)
    await executor.close()


@pytest.mark.parametrize("planted", PLANTED, ids=lambda p: p["name"])
async def test_a_planted_defect_is_found_and_its_twin_is_free_of_it(bench: Bench, planted: dict[str, str]) -> None:
    contract = await bench.contract(planted["task"], planted.get("precision", "float32"))
    request: dict[str, Any] = {
        "contract": contract,
        "files": render_files(contract),
        "space": spaces_of(contract.target)[0],
        "sources": {"cuda_source.cu": (DATA / "kernels" / f"{planted['name']}.cu").read_text()},
        "limits": Limits(rounds_s=0.3),
    }
    evaluation = await bench.executor.evaluate(EvaluateRequest(**request), silent)
    assert isinstance(evaluation, Evaluation) and evaluation.timing is not None, evaluation.reason
    profile = (await bench.executor.profile(ProfileRequest(**request, timing=evaluation.timing), silent)).profile
    if profile.counters_status == "no_permission":
        pytest.skip(profile.counters)
    assert profile.counters_status == "read", profile.counters
    score = {d.direction.value: d.score for d in profile.directions}
    if "without" in planted:
        said = [sign for d in profile.directions for sign in d.signs_for]
        assert not any(planted["without"] in sign for sign in said), said
        return
    assert profile.bottleneck == planted["bottleneck"], profile.summary
    if planted["first"] == "nothing":
        assert set(score.values()) == {0}, profile.directions
        return
    first = profile.directions[0]
    assert (first.direction.value, first.score >= STRONG) == (planted["first"], True), profile.directions
    assert planted.get("quoted", "") in " ".join(first.signs_for)
    assert profile.launches[0].lines and profile.launches[0].lines[0].file == "cuda_source.cu"
