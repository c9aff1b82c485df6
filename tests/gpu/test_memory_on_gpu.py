"""Rounds on a GPU are remembered under the name by which the planner knows it."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from hiera_mcp.cli.connection import connected
from hiera_mcp.client.drive import drive
from hiera_mcp.client.folder import read_folder
from hiera_mcp.machine import gpu_of
from hiera_mcp.model.space import Space
from hiera_mcp.planning.memory import gain
from hiera_mcp.sandbox.devices import gpus
from hiera_mcp.settings import from_environment
from hiera_mcp.store import Store

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not gpus(), reason="needs an NVIDIA GPU"),
    pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc"),
]

EXAMPLE = Path(__file__).parents[2] / "examples" / "cuda_rmsnorm_silu"


async def test_a_round_on_a_gpu_is_remembered_for_that_gpu(tmp_path: Path) -> None:
    settings = replace(from_environment(), data_dir=tmp_path / "data")
    target = gpus()[0].target
    async with connected(settings) as client:
        await drive(client, read_folder(EXAMPLE).model_copy(update={"target": target}), lambda _: None)
    store = Store.open(settings.database, settings.blobs)
    try:
        (record,) = store.remembered()
    finally:
        store.close()
    assert (record.device, record.space, record.passed) == (gpu_of(target).name, Space.CUDA, 2)
    assert record.room is not None and 0 < gain(record) < 1.1 * record.room
