"""A candidate that is linked with a library which this host keeps outside the system's folders."""

from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.model.contract import Contract
from hiera_mcp.model.evaluation import Evaluation, Status
from hiera_mcp.model.space import Space
from hiera_mcp.model.work import EvaluateRequest, Limits
from hiera_mcp.sandbox.launcher import boxes
from hiera_mcp.sandbox.libraries import Library, installed
from hiera_mcp.sandbox.local import LocalExecutor

SIZE = 128
REFERENCE = f"""
import torch

class Model(torch.nn.Module):
    def forward(self, x, y):
        return x @ y

def get_inputs():
    return [torch.randn({SIZE}, {SIZE}), torch.randn({SIZE}, {SIZE})]

def get_init_inputs():
    return []
"""
GEMM = f"""
#include <cblas.h>
#include "contract.h"
extern "C" int hiera_run(const hiera_inputs *in, const hiera_params *, const hiera_outputs *out, void *) {{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, {SIZE}, {SIZE}, {SIZE},
                1.0f, in->x, {SIZE}, in->y, {SIZE}, 0.0f, out->out, {SIZE});
    return 0;
}}
"""


@pytest.fixture
def blas() -> Library:
    found = next((library for library in installed("cpu") if library.name == "blas"), None)
    if found is None:
        pytest.skip("no BLAS with headers is installed (pip install scipy-openblas32)")
    return found


@pytest.fixture
def product(relu: Contract) -> Contract:
    """The product of two matrices."""
    square: dict[str, Any] = {"shape": [SIZE, SIZE], "dtype": "float32"}
    case = {
        "name": "default",
        "inputs": [{"name": "x", **square}, {"name": "y", **square}],
        "outputs": [{"name": "out", **square}],
        "forward_order": ["x", "y"],
    }
    plain = relu.model_dump(mode="json", exclude={"id"})
    return Contract.model_validate({**plain, "task": {"name": "product", "source": REFERENCE}, "cases": [case]})


async def silent(message: str, fraction: float | None) -> None:
    """For those who do not want to know."""


async def test_a_candidate_that_calls_a_blas_passes(blas: Library, product: Contract, tmp_path: Path):
    request = EvaluateRequest(
        contract=product,
        files=render_files(product),
        space=Space.CPP_LIBRARIES,
        sources={"cpu_source.cpp": GEMM},
        limits=Limits(total_s=90),
    )
    executor = LocalExecutor(cache_dir=tmp_path)
    try:
        result = await executor.evaluate(request, silent)
        outside = await executor.evaluate(request.model_copy(update={"space": Space.CPP}), silent)
    finally:
        await executor.close()
    assert isinstance(result, Evaluation) and result.status is Status.PASSED, result.reason
    assert isinstance(outside, Evaluation) and outside.status is Status.INVALID_SPACE, outside.reason


def test_the_runner_sees_the_libraries_that_candidates_may_be_linked_with(blas: Library, tmp_path: Path):
    also = boxes.candidate_binds("cpu", builds_extension=False)
    assert set(blas.binds) <= set(boxes.runner(tmp_path, 0, "cpu", Limits(), also).binds)
