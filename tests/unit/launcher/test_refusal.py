"""On a host where no isolation works, nothing untrusted is run, and the doctor still answers."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.errors import NoIsolationError
from hiera_mcp.model.work import DoctorReport, TraceRequest
from hiera_mcp.sandbox.launcher.host import Host
from hiera_mcp.sandbox.launcher.judges import Judges
from hiera_mcp.sandbox.launcher.locks import DeviceLocks
from hiera_mcp.sandbox.launcher.operations import OPERATIONS
from hiera_mcp.sandbox.launcher.tracers import Tracers
from hiera_mcp.sandbox.launcher.work import WorkRoot


@pytest.fixture
def host(tmp_path: Path) -> Host:
    work = WorkRoot.create(tmp_path)
    why = NoIsolationError("No way to isolate untrusted code works on this host.", todo="Install bubblewrap.")
    return Host(why, work, tmp_path, asyncio.Semaphore(1), DeviceLocks(tmp_path), Judges(work), Tracers(work))


async def test_work_is_refused_with_what_to_install(host: Host, heard: Any):
    request = TraceRequest(source="x = 1", name="any").model_dump(mode="json")
    with pytest.raises(NoIsolationError, match="Install bubblewrap"):
        await OPERATIONS["trace"](host, request, heard)


async def test_the_doctor_still_answers(host: Host, heard: Any):
    report = await OPERATIONS["doctor"](host, {}, heard)
    assert isinstance(report, DoctorReport) and report.chosen is None
    assert [r.backend for r in report.isolation] == ["bubblewrap", "landlock"]
    assert not any(t.runs for t in report.targets)
