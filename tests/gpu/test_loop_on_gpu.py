"""The whole loop on a real GPU: each implementation space, and faults after which the next candidate must pass."""

import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from mcp import Client

from hiera_mcp.cli.connection import connected
from hiera_mcp.client.drive import drive
from hiera_mcp.client.folder import read_folder
from hiera_mcp.client.report import CandidateRow
from hiera_mcp.client.script import Submission
from hiera_mcp.sandbox.devices import gpus
from hiera_mcp.settings import from_environment

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not gpus(), reason="needs an NVIDIA GPU"),
    pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc"),
]

Server = Callable[[], AbstractAsyncContextManager[Client]]
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return lambda: connected(replace(from_environment(), data_dir=tmp_path / "data"))


async def run(client: Client, folder: str, target: str, extra: tuple[Submission, ...] = ()) -> dict[str, CandidateRow]:
    script = read_folder(EXAMPLES / folder)
    first = script.rounds[0]
    rounds = (first.model_copy(update={"candidates": (*extra, *first.candidates)}),)
    report = await drive(client, script.model_copy(update={"target": target, "rounds": rounds}), lambda _: None)
    return {c.name: c for c in report.run.candidates}


def own_target() -> str:
    return gpus()[0].target


async def test_pure_cuda_beats_eager_by_fusing(server: Server) -> None:
    async with server() as client:
        rows = await run(client, "cuda_rmsnorm_silu", own_target())
    assert {name: c.status for name, c in rows.items()} == {"block_per_row": "passed", "warp_per_row": "passed"}
    assert all(c.speedup is not None and c.speedup.low > 2 for c in rows.values())
    assert all(c.floor_ratio is not None and c.floor_ratio > 0.9 for c in rows.values())


async def test_a_library_candidate_passes_in_its_space(server: Server) -> None:
    async with server() as client:
        rows = await run(client, "cuda_libraries_linear_relu", own_target())
    assert rows["cublaslt_epilogue"].status == "passed", rows["cublaslt_epilogue"].reason


async def test_a_model_with_a_kernel_of_its_own_passes_in_the_pytorch_space(server: Server) -> None:
    async with server() as client:
        rows = await run(client, "cuda_pytorch_mlp_gelu", own_target())
    assert rows["mm_then_fused_epilogue"].status == "passed", rows["mm_then_fused_epilogue"].reason


async def test_code_for_an_a100_runs_on_a_newer_gpu_and_the_result_says_so(server: Server) -> None:
    if own_target() == "cuda:sm_80":
        pytest.skip("this GPU is an A100's generation itself")
    async with server() as client:
        row = (await run(client, "cuda_rmsnorm_silu", "cuda:sm_80"))["block_per_row"]
        evaluation = await client.read_resource(f"hiera://candidates/{row.candidate_id}/evaluation")
    assert row.status == "passed", row.reason
    assert "cuda:sm_80 ran on" in str(evaluation)


HANG = """
#include "contract.h"
__global__ void endless(float* out) { while (true) ((volatile float*)out)[0] = 1.f; }
extern "C" int hiera_run(const hiera_inputs*, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t s) {
    endless<<<1, 1, 0, s>>>(out->out);
    return cudaGetLastError();
}
"""
WILD = HANG.replace("while (true) ((volatile float*)out)[0] = 1.f;", "out[1ll << 44] = 1.f;")


async def test_after_an_endless_kernel_and_an_illegal_address_the_next_candidate_passes(server: Server) -> None:
    bad = tuple(
        Submission(name=name, sources={"cuda_source.cu": text}) for name, text in (("hang", HANG), ("wild", WILD))
    )
    async with server() as client:
        rows = await run(client, "cuda_rmsnorm_silu", own_target(), bad)
    assert rows["hang"].status == "timeout", rows["hang"].reason
    assert rows["wild"].status == "crash", rows["wild"].reason
    assert rows["block_per_row"].status == "passed", rows["block_per_row"].reason
