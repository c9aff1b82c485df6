"""Hardware counters of a candidate, through the tools, by Nsight Compute inside the runner's box."""

import lzma
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from hiera_mcp.cli.connection import connected
from hiera_mcp.client.drive import drive
from hiera_mcp.client.folder import read_folder
from hiera_mcp.client.session import Session
from hiera_mcp.model.profile import Profile
from hiera_mcp.sandbox.devices import gpus
from hiera_mcp.sandbox.launcher.host import Host
from hiera_mcp.sandbox.launcher.reports import by_pages, read
from hiera_mcp.sandbox.profiling import nsight
from hiera_mcp.sandbox.profiling.launches import launches
from hiera_mcp.settings import from_environment
from hiera_mcp.tools.profile_view import ProfileView

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not gpus(), reason="needs an NVIDIA GPU"),
    pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc"),
    pytest.mark.skipif(nsight.find() is None, reason="needs Nsight Compute"),
]

Server = Callable[[], AbstractAsyncContextManager[Client]]
EXAMPLES = Path(__file__).parents[2] / "examples"
RECORDED = Path(__file__).parents[1] / "data" / "profiles" / "recorded"


@pytest.fixture
def server(tmp_path: Path) -> Server:
    """A server with a database of its own."""
    return lambda: connected(replace(from_environment(), data_dir=tmp_path / "data"))


async def profile_of_best(client: Client, folder: str) -> tuple[ProfileView, Profile]:
    """Run a folder's first round and profile its fastest candidate: what an agent sees, and all of it."""
    script = read_folder(EXAMPLES / folder)
    wanted = script.model_copy(update={"target": gpus()[0].target, "rounds": script.rounds[:1]})
    rows = (await drive(client, wanted, lambda _: None)).run.candidates
    best = max((c for c in rows if c.speedup is not None), key=lambda c: c.speedup.median if c.speedup else 0.0)
    answer: Any = await Session(client).work("hiera_candidate_profile", candidate_id=best.candidate_id)
    view = ProfileView.model_validate(answer["profile"])
    if view.counters_status == "no_permission":
        pytest.skip(view.counters)
    return view, Profile.model_validate_json(await text(client, view.uris["profile"]))


async def text(client: Client, uri: str) -> str:
    """A resource's whole text."""
    content: Any = (await client.read_resource(uri)).contents[0]
    return content.text


def values(profile: Profile) -> dict[str, float | None]:
    return {m.name: m.value for m in profile.metrics}


async def test_counters_of_a_kernel_are_read_and_agree_with_its_measured_time(server: Server) -> None:
    async with server() as client:
        view, profile = await profile_of_best(client, "cuda_rmsnorm_silu")
        pictures = [await text(client, view.uris[name]) for name in ("roofline", "stalls")]
        listing = await text(client, view.uris["listing"])
    found = values(profile)
    assert re.match(r"Hardware counters of \d+ kernel launch", profile.counters), profile.counters
    assert found["ncu_grid"] and found["ncu_block"] and found["ncu_registers"]
    dram, seconds = found["ncu_dram_pct"], profile.launches[0].seconds
    assert dram is not None and 20 < dram <= 100
    assert seconds is not None and found["time"] is not None
    assert seconds == pytest.approx(found["time"], rel=0.3)  # the profiler's clock, the fourth witness
    assert len(view.model_dump_json()) < 7000  # about 2,000 tokens
    assert all(picture.startswith("<svg") for picture in pictures)
    assert profile.launches[0].lines[0].file == "cuda_source.cu"
    assert f"cuda_source.cu:{profile.launches[0].lines[0].line}" in listing


async def test_counters_of_a_model_that_calls_torch_are_read_as_well(server: Server) -> None:
    async with server() as client:
        view, profile = await profile_of_best(client, "cuda_pytorch_mlp_gelu")
    assert values(profile)["ncu_sm_pct"], profile.counters
    assert len(view.model_dump_json()) < 7000


async def test_ncu_prints_in_a_box_what_its_reader_reads_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", tempfile.gettempdir())  # opening a host moves it, for its own process
    host, program = await Host.open(tmp_path / "cache", unsafe=False), nsight.find()
    assert program is not None
    report = lzma.decompress((RECORDED / "uncoalesced.ncu-rep.xz").read_bytes())
    found = await read(host, program, report)
    printed = await by_pages(host, program, report)
    await host.close()
    assert found.by == "ncu_report"
    assert [launch.lines for launch in launches(found.launches, {})] == [x.lines for x in launches(printed, {})]
    assert launches(printed, {})[0].lines[0].line == 10
