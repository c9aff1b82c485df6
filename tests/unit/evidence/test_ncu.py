"""Nsight Compute's command line and CSV."""

import csv
import io
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.sandbox import ncu

IDS = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size"]


def _csv(rows: list[tuple[str, dict[str, str]]], unit: str = "nsecond") -> str:
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow([*IDS, *ncu.METRICS.values()])
    writer.writerow(["" for _ in IDS] + [unit if name == "time" else "%" for name in ncu.METRICS])
    for i, (kernel, values) in enumerate(rows):
        head = [str(i), "1", "python", "h", kernel, "1", "7", "(256, 1, 1)", "(4, 1, 1)"]
        writer.writerow([*head, *(values.get(name, "n/a") for name in ncu.METRICS)])
    return out.getvalue()


def test_the_longest_launch_speaks_for_the_candidate() -> None:
    text = "==PROF== Connected to process 1\nhello from the program\n" + _csv(
        [("a(float*)", {"time": "1,024", "dram_pct": "12.5"}), ("b(float*)", {"time": "20,480", "dram_pct": "87.07"})]
    )
    launches = ncu.parse_csv(text)
    assert [launch.kernel for launch in launches] == ["a(float*)", "b(float*)"]
    assert launches[1].seconds == pytest.approx(20.48e-6)
    found = {m.name: m for m in ncu.metrics(launches)}
    assert found["ncu_dram_pct"].value == 87.07 and found["ncu_dram_pct"].origin == "counter"
    assert found["ncu_l2_hit"].value is None and "lts__t_sector_hit_rate" in found["ncu_l2_hit"].reason


@given(st.text(max_size=300))
def test_no_text_upsets_the_reader(text: str) -> None:
    ncu.parse_csv(text)
    ncu.parse_csv('"ID","Kernel Name"\n' + text)
    assert ncu.failure(text)


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=5))
def test_values_survive_thousands_commas(values: list[float]) -> None:
    launches = ncu.parse_csv(_csv([("k", {"instructions": f"{v:,.6f}"}) for v in values]))
    assert [launch.values["instructions"] for launch in launches] == pytest.approx(values, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission …", "administrators"),
        ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded", "container"),
        ("==WARNING== No kernels were profiled.", "no kernel"),
        ("==ERROR== Something new", "Something new"),
        ("", "no table"),
    ],
)
def test_a_failure_says_what_to_do(text: str, said: str) -> None:
    told = ncu.failure(text)
    assert told is not None and said in told


def test_a_table_is_no_failure() -> None:
    assert ncu.failure(_csv([("k", {"time": "1"})])) is None


def test_the_command_line_runs_the_target_last_and_leaves_the_clocks_alone() -> None:
    line = ncu.command(Path("/opt/ncu"), ("python", "runner.py"), "/box/ncu.csv", skip=3, count=2, kernel="relu.*")
    assert line[0] == "/opt/ncu" and line[-2:] == ("python", "runner.py")
    pairs = set(itertools.pairwise(line))
    assert {
        ("--clock-control", "none"),
        ("--page", "raw"),
        ("--launch-skip", "3"),
        ("--kernel-name", "regex:relu.*"),
    } <= pairs
    assert ("--log-file", "/box/ncu.csv") in pairs and "gpu__time_duration.sum" in line[line.index("--metrics") + 1]


def test_a_real_report_of_an_h200_is_read() -> None:
    """ncu 2025.3.1 with the command line of `ncu.command`, two launches; columns that we do not ask for are left out."""
    text = (Path(__file__).parent / "h200_ncu_2025_3.csv").read_text()
    assert ncu.failure(text) is None
    relu, tiny = ncu.parse_csv(text)
    assert (relu.kernel, tiny.kernel) == ("relu(const float4 *, float4 *, int)", "tiny(float *)")
    assert relu.seconds == pytest.approx(123.008e-6) and tiny.seconds == pytest.approx(1.632e-6)
    found = {m.name: m.value for m in ncu.metrics((tiny, relu))}
    assert None not in found.values()
    assert found["ncu_dram_pct"] == 86.59 and found["ncu_dram_read"] == 268_451_072 and found["ncu_registers"] == 16
