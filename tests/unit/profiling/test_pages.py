"""Nsight Compute's CSV pages: what is not a table, commas, units, and what a real one says."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hiera_mcp.sandbox.profiling.launches import launches
from hiera_mcp.sandbox.profiling.metrics import METRICS
from hiera_mcp.sandbox.profiling.numbers import number
from hiera_mcp.sandbox.profiling.pages import from_pages
from hiera_mcp.sandbox.profiling.source_page import instructions, places

IDS = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size"]


def raw_page(rows: list[tuple[str, dict[str, str]]], unit: str = "ns") -> str:
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow([*IDS, *METRICS.values()])
    writer.writerow(["" for _ in IDS] + [unit if name == "time" else "%" for name in METRICS])
    for i, (kernel, values) in enumerate(rows):
        head = [str(i), "1", "python", "h", kernel, "1", "7", "(256, 1, 1)", "(4, 1, 1)"]
        writer.writerow([*head, *(values.get(name, "n/a") for name in METRICS)])
    return out.getvalue()


def test_launches_keep_their_order_and_share_the_time_of_the_call() -> None:
    text = "==PROF== Connected to process 1\nhello from the program\n" + raw_page(
        [("a(float*)", {"time": "1,024"}), ("b(float*)", {"time": "3,072", "dram_pct": "87.07"})]
    )
    first, second = launches(from_pages(text), {})
    assert (first.kernel, second.kernel) == ("a(float*)", "b(float*)")
    assert (first.share, second.share) == (0.25, 0.75)
    assert second.seconds == pytest.approx(3.072e-6) and second.value("dram_pct") == 87.07


def test_what_ncu_does_not_know_is_null_and_says_which_metric_it_was() -> None:
    (launch,) = launches(from_pages(raw_page([("k", {"time": "1"})])), {})
    absent = next(m for m in launch.metrics if m.name == "l2_hit")
    assert absent.value is None and "lts__t_sector_hit_rate" in absent.reason


@given(st.text(max_size=300))
@example("²,,")
def test_no_text_upsets_the_reader(text: str) -> None:
    from_pages(text, text, text, text)
    from_pages('"ID","Kernel Name"\n' + text, '"ID","Rule Name","Rule Description"\n' + text, text)
    instructions(f'"Kernel Name","k"\n"Address","Source"\n{text}', places(f'"File Path","a.cu"\n{text}'))


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=5))
def test_values_survive_thousands_commas(values: list[float]) -> None:
    found = from_pages(raw_page([("k", {"instructions": f"{v:,.6f}"}) for v in values]))
    assert [launch.metrics[METRICS["instructions"]] for launch in found] == pytest.approx(values, abs=1e-6)


@pytest.mark.parametrize("text", ["n/a", "", "nan", "inf", "(256, 1, 1)"])
def test_what_is_no_number_is_not_zero(text: str) -> None:
    assert number(text) is None


def test_an_inlined_instruction_is_placed_where_it_was_called() -> None:
    lines = """"File Path","/box/cuda_source.cu"
"Line No","Source","Address","Source"
"7","<Unable to open source file>","-","-"
"","","0x10","      MOV R1, R2"
"","","...","..."
"File Path","/usr/include/cuda_fp16.hpp"
"708","<Unable to open source file>","-","-"
"","","0x10","      MOV R1, R2"
"","","0x20","      HADD2 R1, R2"
"""
    assert places(lines) == {0x10: ("/box/cuda_source.cu", 7), 0x20: ("/usr/include/cuda_fp16.hpp", 708)}


def test_padding_behind_a_kernel_is_no_instruction_of_it() -> None:
    table = """"Kernel Name","k",
"Address","Source","Instructions Executed","stall_wait","stall_no_inst"
"0x7f00","      EXIT","4","3","0"
"0x7f10","      NOP","0","0","0"
"""
    ((found,),) = instructions(table, {0x7F00: ("a.cu", 3)})
    assert (found.offset, found.sass, found.file, found.line) == (0, "EXIT", "a.cu", 3)
    assert (dict(found.counts), dict(found.stalls)) == ({"executed": 4.0}, {"wait": 3.0})


def test_a_real_table_of_an_h200_is_read() -> None:
    """ncu 2025.3.1, two launches, with `--metrics` alone; columns that we do not ask for are left out."""
    relu, tiny = launches(from_pages((Path(__file__).parent / "h200_ncu_2025_3.csv").read_text()), {})
    assert (relu.kernel, tiny.kernel) == ("relu(const float4 *, float4 *, int)", "tiny(float *)")
    assert relu.seconds == pytest.approx(123.008e-6) and tiny.seconds == pytest.approx(1.632e-6)
    assert [relu.value(n) for n in ("dram_pct", "dram_read", "registers")] == [86.59, 268_451_072, 16]
