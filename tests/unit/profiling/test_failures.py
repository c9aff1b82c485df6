"""Nsight Compute's own words for what went wrong, and its command line."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.sandbox.profiling import nsight
from hiera_mcp.sandbox.profiling.failures import failure
from hiera_mcp.sandbox.profiling.metrics import METRICS, collected


@pytest.mark.parametrize(
    ("log", "status", "said"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission …", "no_permission", "NVreg_Restrict"),
        ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded", "unsupported", "container"),
        ("==WARNING== No kernels were profiled.", "no_kernels", "launched none"),
        ("==ERROR== Unknown Error on device 0.", "mismatch", "driver"),
        ("==ERROR== Something new", "failed", "Something new"),
        ("", "failed", "no report"),
    ],
)
def test_a_failure_says_what_to_do(log: str, status: str, said: str) -> None:
    found, advice = failure(log)
    assert found == status and said in advice


@given(st.text(max_size=300))
def test_every_log_without_a_report_gets_a_status_and_a_sentence(log: str) -> None:
    status, advice = failure(log)
    assert status != "read" and advice.endswith((".", ")."))


def test_the_command_line_runs_the_target_last_and_leaves_the_clocks_alone() -> None:
    line = nsight.record_command(Path("/opt/ncu"), ("python", "runner.py"), "/box/r.ncu-rep", "/box/ncu.log", 9)
    assert line[0] == "/opt/ncu" and line[-2:] == ("python", "runner.py")
    pairs = set(itertools.pairwise(line))
    assert {
        ("--clock-control", "none"),
        ("--profile-from-start", "off"),
        ("-o", "/box/r.ncu-rep"),
        ("--log-file", "/box/ncu.log"),
        ("--section", "SourceCounters"),
    } <= pairs
    assert "gpu__time_duration.sum" in line[line.index("--metrics") + 1]


@pytest.mark.parametrize(("major", "tma", "wgmma"), [(8, False, False), (9, True, True), (10, True, False)])
def test_a_gpu_is_asked_only_for_counters_that_its_generation_has(major: int, tma: bool, wgmma: bool) -> None:
    asked = collected(major)
    assert [METRICS[name] in asked for name in ("tma_loads", "wgmma_pct")] == [tma, wgmma]
    assert set(collected(None)) <= set(asked)


def test_the_reader_beside_ncu_comes_first_and_its_folder_tells_the_version(tmp_path: Path) -> None:
    home = tmp_path / "nsight-compute" / "2025.3.1"
    (home / "extras" / "python").mkdir(parents=True)
    (home / "extras" / "python" / "ncu_report.py").touch()
    assert nsight.readers(home / "ncu")[0] == home / "extras" / "python"
    assert nsight.version(home / "ncu") == "2025.3.1"


def test_a_toolkit_has_its_reader_in_a_folder_beside_bin(tmp_path: Path) -> None:
    home = tmp_path / "cuda" / "nsight-compute-2025.3.1" / "extras" / "python"
    home.mkdir(parents=True)
    (home / "ncu_report.py").touch()
    assert nsight.readers(tmp_path / "cuda" / "bin" / "ncu")[0] == home
