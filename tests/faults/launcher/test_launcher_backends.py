"""The same candidate under every backend, and a target without its device."""

import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.model.evaluation import Evaluation, NotRun, Status
from hiera_mcp.sandbox.devices import best_target
from hiera_mcp.sandbox.local import LocalExecutor

CUDA = """
#include "contract.h"
__global__ void relu(const float *x, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = x[i] < 0 ? 0 : x[i];
}
extern "C" int hiera_run(const hiera_inputs *in, const hiera_params *, const hiera_outputs *out, void *,
                         cudaStream_t stream) {
    relu<<<256, 256, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
"""


async def silent(message: str, fraction: float | None) -> None:
    """For those who do not want to know."""


@pytest.fixture
async def unsafe(tmp_path: Path) -> AsyncGenerator[LocalExecutor]:
    made = LocalExecutor(unsafe=True, cache_dir=tmp_path)
    yield made
    await made.close()


@pytest.fixture
async def executor(tmp_path: Path) -> AsyncGenerator[LocalExecutor]:
    made = LocalExecutor(cache_dir=tmp_path)
    yield made
    await made.close()


async def test_without_isolation_on_request_a_candidate_passes_and_its_device_says_so(
    unsafe: LocalExecutor, request_for: Any
):
    result = await unsafe.evaluate(request_for(), silent)
    assert isinstance(result, Evaluation) and result.status is Status.PASSED, result
    assert result.device is not None and result.device.isolation == "unsafe"


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.skipif(best_target() != "cpu", reason="a GPU is here: the candidate would run")
async def test_a_cuda_candidate_on_a_host_without_a_gpu_is_built_and_not_run(
    executor: LocalExecutor, request_for: Any, relu: Any
):
    contract = relu.model_copy(update={"target": "cuda:sm_90a"})
    request = request_for().model_copy(
        update={
            "contract": contract,
            "files": render_files(contract),
            "space": contract.spaces[0],
            "sources": {"cuda_source.cu": CUDA},
        }
    )
    result = await executor.evaluate(request, silent)
    assert isinstance(result, NotRun), result
    assert "nothing ran" in result.reason and result.build.ok and result.build.kernels
    broken = request.model_copy(update={"sources": {"cuda_source.cu": CUDA.replace("int i =", "int i")}})
    failed = await executor.evaluate(broken, silent)
    assert isinstance(failed, Evaluation) and failed.status is Status.COMPILE_ERROR
