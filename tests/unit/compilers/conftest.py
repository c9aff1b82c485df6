"""Real compilers in a real box, on y = relu(x) · scale: two cases on cpu, one on CUDA, where compiling takes longer."""

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.errors import ToolchainError
from hiera_mcp.model.contract import (
    Case,
    Contract,
    Degeneracy,
    Features,
    Floor,
    Parameter,
    Task,
    TensorSpec,
    Tolerance,
)
from hiera_mcp.model.space import spaces_of
from hiera_mcp.model.work import CheckRequest, Limits
from hiera_mcp.sandbox.compilers.build import Built, build, find_tool
from hiera_mcp.sandbox.isolation.bubblewrap import Bubblewrap

CPU_SOURCE = """#include "contract.h"
#include <cstddef>
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
#pragma omp parallel for simd
    for (int i = 0; i < HIERA_NUMEL_x; i++) out->y[i] = in->x[i] > 0 ? in->x[i] * p->scale[0] : 0.0f;
    return 0;
}
"""
CUDA_SOURCE = """#include "contract.h"
__global__ void relu(const float* x, const float* scale, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < HIERA_NUMEL_x) y[i] = fmaxf(x[i], 0.0f) * scale[0];
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*,
                         cudaStream_t stream) {
    relu<<<(HIERA_NUMEL_x + 255) / 256, 256, 0, stream>>>(in->x, p->scale, out->y);
    return cudaGetLastError();
}
"""

Compile = Callable[..., Awaitable[Built]]


@pytest.fixture
def cpu_source() -> str:
    return CPU_SOURCE


@pytest.fixture
def cuda_source() -> str:
    return CUDA_SOURCE


@pytest.fixture(scope="session")
def build_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests, so that the same candidate is compiled once."""
    return tmp_path_factory.mktemp("builds")


@pytest.fixture
def compile_candidate(build_folder: Path) -> Compile:
    """compile_candidate(target, sources, level=0, folder=None, **limits): the candidate, built in the level's space."""

    async def run(
        target: str, sources: dict[str, str], level: int = 0, folder: Path | None = None, **limits: float
    ) -> Built:
        _need(target)
        return await build(request(target, sources, level, **limits), Bubblewrap(), folder or build_folder, _silent)

    return run


@pytest.fixture
def make_request() -> Callable[..., CheckRequest]:
    return request


def request(target: str, sources: dict[str, str], level: int = 0, **limits: float) -> CheckRequest:
    contract = relu_contract(target)
    return CheckRequest(
        contract=contract,
        files=render_files(contract),
        space=spaces_of(target)[level],
        sources=sources,
        limits=Limits.model_validate(limits),
    )


def relu_contract(target: str) -> Contract:
    def case(name: str, n: int) -> Case:
        x, y = TensorSpec(name="x", shape=(n,), dtype="float32"), TensorSpec(name="y", shape=(n,), dtype="float32")
        return Case(name=name, inputs=(x,), outputs=(y,), forward_order=("x",))

    scale = Parameter(
        name="scale", shape=(1,), dtype="float32", path="scale", role="scale", layout="[1]", consumed_by="forward"
    )
    return Contract(
        task=Task(name="scaled_relu", source="class Model: ..."),
        target=target,
        precision="float32",
        parameters=(scale,),
        cases=(case("small", 1000), case("large", 4096)) if target == "cpu" else (case("small", 1000),),
        tolerance=Tolerance(rtol=1e-5, atol=1e-6, reference_factor=4, allow_tf32=False),
        features=Features(
            operators=(),
            flops=2000,
            compulsory_bytes=8004,
            unfused_bytes=16000,
            arithmetic_intensity=0.25,
            launches=2,
            parameter_bytes=4,
            tensor_core_legal=False,
            tensor_core_reason="no contraction",
        ),
        floor=Floor(
            seconds=1e-6,
            bound="memory",
            memory_seconds=1e-6,
            math_seconds=1e-8,
            bandwidth=8e9,
            peak_flops=2e11,
            basis="made up for a test",
            arithmetic="8004 B / 8 GB/s",
        ),
        degeneracy=Degeneracy(measured=False, reason="a test"),
    )


def _need(target: str) -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    try:
        find_tool(target)
    except ToolchainError as e:
        pytest.skip(str(e))


async def _silent(message: str, fraction: float | None) -> None:
    del message, fraction
