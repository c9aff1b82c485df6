"""Nsight Compute around a runner: what it leaves is read, and what goes wrong is told.

The program itself needs a GPU (tests/gpu). Here a stand-in takes its command line, runs the target as it does, leaves a
file for a report, and prints for it the table that the real one printed on an H200; judge, runner, boxes and channel are
real.
"""

import importlib.util
import lzma
import sys
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.model.work import JudgeReport, Limits, ProfileRequest
from hiera_mcp.sandbox.isolation.box import Outcome
from hiera_mcp.sandbox.launcher import boxes
from hiera_mcp.sandbox.launcher.building import build
from hiera_mcp.sandbox.launcher.counting import count, without_report
from hiera_mcp.sandbox.launcher.host import Host
from hiera_mcp.sandbox.launcher.judges import Ready
from hiera_mcp.sandbox.launcher.judging import Ended, Job
from hiera_mcp.sandbox.launcher.reports import read
from hiera_mcp.sandbox.profiling import nsight

TABLE = Path(__file__).parents[2] / "unit" / "profiling" / "h200_ncu_2025_3.csv"
RECORDED = Path(__file__).parents[2] / "data" / "profiles" / "recorded"
STAND_IN = f"""#!/bin/sh
[ "$1" = --import ] && {{ [ "$4" = raw ] && cat "$(dirname "$0")/table.csv"; exit; }}
while [ "$1" != "{sys.executable}" ]; do [ "$1" = -o ] && report=$2; shift; done
"$@" || exit
sleep 0.5
echo "a report that only the stand-in reads" >"$report"
"""


async def silent(message: str, fraction: float | None) -> None:
    """For those who do not want to know."""


@pytest.fixture
async def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Host]:
    monkeypatch.setattr(tempfile, "tempdir", tempfile.gettempdir())  # opening a host moves it, for its own process
    made = await Host.open(tmp_path / "cache", unsafe=False)
    yield made
    await made.close()


async def job_for(host: Host, request: Any) -> Job:
    wanted = ProfileRequest(
        **{name: getattr(request, name) for name in ProfileRequest.model_fields if name != "timing"}, timing=None
    )
    return Job(host, wanted, await build(host, wanted, silent), "cpu", silent)


def install(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    (folder / "ncu").write_text(script)
    (folder / "ncu").chmod(0o755)
    (folder / "table.csv").write_bytes(TABLE.read_bytes())
    monkeypatch.setenv("PATH", str(folder), prepend=":")


async def test_the_table_is_read_after_the_runner_has_ended(
    host: Host, request_for: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    install(tmp_path / "nsight", STAND_IN, monkeypatch)
    found = await count(await job_for(host, request_for()))
    assert (found.status, len(found.launches)) == ("read", 2), found.note
    assert "2 kernel launches" in found.note and "of their time" in found.note
    assert found.tool.endswith("read by CSV") and found.report.startswith(b"a report")


async def test_a_candidate_that_crashes_under_it_is_told_with_its_signal(
    host: Host, request_for: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    install(tmp_path / "nsight", STAND_IN, monkeypatch)
    crash = "static int calls = 0; if (++calls > 2) __builtin_trap();"
    found = await count(await job_for(host, request_for(inside=crash)))
    assert (found.status, found.launches) == ("candidate_failed", ())
    assert "runner lost" in found.note and "`time`" in found.note


@pytest.mark.skipif(nsight.find() is not None, reason="Nsight Compute is installed here")
async def test_where_it_is_missing_the_note_says_what_to_install(host: Host, request_for: Any):
    found = await count(await job_for(host, request_for()))
    assert found.status == "missing" and "Install Nsight Compute" in found.note


async def test_one_that_does_not_start_is_told_too(
    host: Host, request_for: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    install(tmp_path / "nsight", "#!/bin/sh\necho 'no such luck'\nexit 3\n", monkeypatch)
    found = await count(await job_for(host, request_for()))
    assert found.launches == () and "no such luck" in found.note


async def test_a_report_that_nothing_reads_is_told_with_what_to_install(
    host: Host, request_for: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    install(tmp_path / "nsight", STAND_IN.replace("= raw", "= nothing"), monkeypatch)
    found = await count(await job_for(host, request_for()))
    assert (found.status, found.launches) == ("mismatch", ()) and "ncu-report" in found.note


@pytest.mark.skipif(importlib.util.find_spec("ncu_report") is None, reason="needs the package ncu-report")
async def test_a_real_report_is_read_by_nvidias_reader_in_a_box(host: Host, tmp_path: Path):
    report = lzma.decompress((RECORDED / "uncoalesced.ncu-rep.xz").read_bytes())
    found = await read(host, tmp_path / "ncu", report)
    assert (found.by, [launch.kernel for launch in found.launches]) == ("ncu_report", ["scale(const float *, float *)"])
    assert {i.line for i in found.launches[0].instructions} >= {8, 9, 10}


async def test_what_is_no_report_is_read_by_nobody(host: Host, tmp_path: Path):
    found = await read(host, tmp_path / "ncu", b"NVR\0 and then nothing of the kind")
    assert (found.by, found.launches) == ("", ())


def ended(log: str, outcome: Any = "passed", output: str = "") -> Ended:
    report = JudgeReport(outcome=outcome, stage="time", reason="as the judge saw it")
    return Ended(report, Outcome("exit", 0, output, len(output), 1.0), None, Ready(), None, log)


@pytest.mark.parametrize("outcome", ["passed", "candidate_error"])
def test_a_lack_of_permission_says_what_to_set(outcome: str):
    found = without_report(ended("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", outcome))
    assert found.status == "no_permission" and "NVreg_RestrictProfilingToAdminUsers=0" in found.note


def test_a_candidate_without_a_kernel_is_told_as_such():
    found = without_report(ended("==WARNING== No kernels were profiled."))
    assert found.status == "no_kernels" and "launched none" in found.note


def test_without_a_report_the_candidates_end_is_told():
    found = without_report(ended("", "runner_lost", "last words"))
    assert found.status == "candidate_failed"
    assert "runner lost: as the judge saw it" in found.note and "last words" in found.note


def test_a_call_that_takes_too_long_under_the_profiler_is_no_fault_of_the_candidate():
    assert without_report(ended("", "timeout")).status == "timeout"
    assert without_report(replace(ended(""), deadline="not done within 600 s")).status == "timeout"


def test_the_runner_is_ncus_child_inside_the_box_and_may_be_traced(tmp_path: Path):
    runner = boxes.runner(tmp_path, 7, "cuda:1", Limits())
    box = boxes.profiler(runner, Path("/opt/nvidia/nsight-compute/2025.3.1/ncu"))
    assert box.argv[0].endswith("/ncu") and box.argv[-len(runner.argv) :] == runner.argv
    assert ("--log-file", "/box/ncu.log") in zip(box.argv, box.argv[1:], strict=False)
    assert ("--profile-from-start", "off") in zip(box.argv, box.argv[1:], strict=False)
    assert (box.profiler, box.writable, box.gpu, box.fds) == (True, True, runner.gpu, (7,))
    assert "/opt/nvidia/nsight-compute/2025.3.1" in [bind.inside for bind in box.binds]
