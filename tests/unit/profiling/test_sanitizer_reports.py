"""What compute-sanitizer prints, as findings.

The texts here are in the forms that NVIDIA documents (Compute Sanitizer 2021 to 2025); those that an H200 printed for planted
defects are read in test_recorded_sanitizer_logs.py.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.model.sanitizer import Finding, Sanitized, SanitizerTool, ToolResult
from hiera_mcp.sandbox.profiling.sanitizer_failures import failure
from hiera_mcp.sandbox.profiling.sanitizer_findings import Reader
from hiera_mcp.sandbox.profiling.sanitizer_reports import Place, parse_place, reports, total, unprinted

SOURCE = "\n".join(f"line {n};" for n in range(1, 60))
SOURCES = {"cuda_source.cu": SOURCE}


def read(tool: SanitizerTool, *lines: str) -> tuple[Finding, ...]:
    """The findings of a log with these lines, each with the tool's prefix."""
    return Reader(tool, SOURCES).findings("\n".join(f"========= {line}" for line in ("COMPUTE-SANITIZER", *lines)))


def out_of_bounds(thread: int = 0, line: int = 12) -> tuple[str, ...]:
    return (
        "Invalid __global__ write of size 4 bytes",
        f"    at scale(const float *, float *)+0x90 in cuda_source.cu:{line}",
        f"    by thread ({thread},0,0) in block (7,0,0)",
        "    Address 0x7f3c7ec00400 is out of bounds",
        "    and is 1 bytes after the nearest allocation at 0x7f3c7ec00000 of size 1,024 bytes",
        "    Saved host backtrace up to driver entry point at kernel launch time",
        "        Host Frame: hiera_run [0xadb6] in case0.so",
        "",
    )


def test_a_write_out_of_bounds_is_found_with_kernel_line_and_address_space() -> None:
    (found,) = read("memcheck", *out_of_bounds(), "ERROR SUMMARY: 1 error")
    assert (found.what, found.severity) == ("Invalid __global__ write of size 4 bytes, out of bounds", "error")
    assert (found.kernel, found.file, found.line) == ("scale(const float *, float *)", "cuda_source.cu", 12)
    assert (found.space, found.text, found.count) == ("global", "line 12;", 1)
    assert "thread (0,0,0) in block (7,0,0)" in found.detail and "1 bytes after" in found.detail
    assert found.breaks_memory


def test_reports_of_one_line_are_one_finding_and_those_of_another_line_are_not() -> None:
    found = read("memcheck", *out_of_bounds(0), *out_of_bounds(1), *out_of_bounds(2, line=13))
    assert [(f.line, f.count) for f in found] == [(12, 2), (13, 1)]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("unaligned_kernel()+0x100 in memcheck_demo.cu:34", Place("unaligned_kernel()", "memcheck_demo.cu", 34)),
        ("unaligned_kernel():0x160 in memcheck_demo.cu:6", Place("unaligned_kernel()", "memcheck_demo.cu", 6)),
        ("k(int *)+0x90 in /home/a b/x/block.cu:41", Place("k(int *)", "block.cu", 41)),
        ("k(int *)+0x90 in block.cu:41 [508 hazards]", Place("k(int *)", "block.cu", 41)),
        ("unaligned_kernel()+0x50", Place("unaligned_kernel()", "", None)),
        ("S::operator+(S const &)+0x50", Place("S::operator+(S const &)", "", None)),
        ("0x578 in /home/x/task1.cu:120:MatMul(Matrix, Matrix)", Place("MatMul(Matrix, Matrix)", "task1.cu", 120)),
        ("0x88 in kernel(float *)", Place("kernel(float *)", "", None)),
        ("0x79d8", None),
        ("no place at all", None),
    ],
)
def test_places_are_read_in_each_form_that_the_tool_has_had(text: str, place: Place | None) -> None:
    assert parse_place(text) == place


def test_a_misaligned_access_is_told_as_such() -> None:
    (found,) = read(
        "memcheck",
        "Invalid __global__ read of size 16 bytes",
        "    at k(float *)+0x160 in cuda_source.cu:6",
        "    by thread (0,0,0) in block (0,0,0)",
        "    Address 0x7f6510c00001 is misaligned",
    )
    assert found.what.endswith("read of size 16 bytes, misaligned")


def test_a_helper_of_a_library_is_placed_at_the_candidates_line_that_called_it() -> None:
    (found,) = read(
        "memcheck",
        "Invalid __shared__ read of size 4 bytes",
        "    at cub::Load(float *)+0x50 in block_load.cuh:99",
        "    by thread (3,0,0) in block (0,0,0)",
        "    Address 0x400 is out of bounds",
        "        Device Frame: sums(float *)+0x30 in cuda_source.cu:44",
    )
    assert (found.file, found.line, found.kernel, found.space) == ("cuda_source.cu", 44, "sums(float *)", "shared")


def test_a_race_is_placed_at_its_first_access_with_all_its_hazards() -> None:
    (found,) = read(
        "racecheck",
        "Error: Race reported between Write access at sums(int *, int *)+0x90 in cuda_source.cu:41",
        "    and Read access at sums(int *, int *)+0x100 in cuda_source.cu:51 [508 hazards]",
        "    and Write access at sums(int *, int *)+0x140 in cuda_source.cu:52 [1,000 hazards]",
        "",
        "RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)",
    )
    assert (found.what, found.severity) == ("race between write and read accesses", "error")
    assert (found.line, found.count, found.space) == (41, 1508, "shared")
    assert "cuda_source.cu:51" in found.detail
    assert not found.breaks_memory


def test_a_warning_of_racecheck_stays_one_and_comes_after_the_errors() -> None:
    found = read(
        "racecheck",
        "Warning: Race reported between Read access at k(int *)+0x90 in cuda_source.cu:4",
        "    and Write access at k(int *)+0x100 in cuda_source.cu:5 [4 hazards]",
        "Error: Race reported between Write access at k(int *)+0x290 in cuda_source.cu:8",
        "    and Write access at k(int *)+0x300 in cuda_source.cu:8 [4 hazards]",
    )
    assert [(f.severity, f.line, f.what) for f in found] == [
        ("error", 8, "race of write accesses"),
        ("warning", 4, "race between read and write accesses"),
    ]


def test_an_uninitialised_read_and_a_divergent_barrier_are_found() -> None:
    (read_,) = read(
        "initcheck",
        "Uninitialized __global__ memory read of size 4 bytes",
        "    at add(int *)+0x70 in cuda_source.cu:41",
        "    by thread (31,0,0) in block (1,0,0)",
        "    Address 0x7f3c7ec000fc",
    )
    (barrier,) = read(
        "synccheck",
        "Barrier error detected. Divergent thread(s) in block.",
        "    at [clone k(int *, int *)] outlineSync()+0x11f0 in cuda_source.cu:42",
        "    by thread (32,0,0) in block (0,0,0)",
        "        Device Frame: k(int *, int *)+0xe40 in cuda_source.cu:50",
    )
    assert (read_.severity, read_.line, read_.space) == ("error", 41, "global")
    assert (barrier.severity, barrier.line, barrier.kernel) == ("error", 42, "k(int *, int *)")
    assert not read_.breaks_memory and not barrier.breaks_memory


def test_what_the_checkers_say_of_library_kernels_is_a_warning_but_bad_accesses_are_not() -> None:
    kernel = ("    at cutlass::Kernel<Gemm>(Params)+0x70", "    by thread (31,0,0) in block (1,0,0)")
    (init,) = read("initcheck", "Uninitialized __global__ memory read of size 16 bytes", *kernel)
    (wrong,) = read("memcheck", "Invalid __global__ read of size 16 bytes", *kernel)
    assert (init.severity, init.file, init.line) == ("warning", "", None)
    assert wrong.severity == "error" and wrong.breaks_memory


def host_record(head: str, *frames: str) -> tuple[str, ...]:
    called = (f"        Host Frame: {frame}" for frame in frames)
    return (head, "    Saved host backtrace up to driver entry point at error", *called, "")


def test_a_library_that_stands_on_a_line_of_its_own_is_seen() -> None:
    (found,) = read(
        "memcheck",
        "Leaked 64 bytes at 0x7879c0800000",
        "    Saved host backtrace up to driver entry point at allocation time",
        "        Host Frame:hiera_run [0x2ea4a1]",
        "                   in /box/case0.so",
    )
    assert (found.what, found.severity) == ("Leaked 64 bytes", "warning")


@pytest.mark.parametrize(
    "head",
    [
        'Program hit cudaErrorInvalidValue (error 1) due to "invalid argument" on CUDA API call to cudaFuncSetAttribute.',
        "Leaked 1,024 bytes at 0x7879c0800000",
    ],
)
def test_what_happened_on_the_host_is_the_candidates_only_where_its_library_called(head: str) -> None:
    ours = read("memcheck", *host_record(head, "cudaMalloc [0x56624] in case0.so", "hiera_run [0x5] in case0.so"))
    theirs = read("memcheck", *host_record(head, "cuMemAlloc_v2 [0x1] in libcuda.so.1", "[0x56624] in runtime.so"))
    assert [(f.severity, f.space, f.line) for f in ours] == [("warning", "host", None)]
    assert "0x7879" not in ours[0].what and not ours[0].breaks_memory
    assert theirs == ()


def test_what_the_runner_copies_for_the_judge_is_no_finding_of_initcheck() -> None:
    copied = host_record(
        "Host API uninitialized memory access in cudaMemcpy", "[0x1] in libcuda.so.1", "main in python3"
    )
    assert read("initcheck", *copied, "ERROR SUMMARY: 1 error") == ()


def test_totals_and_the_limit_on_printing_are_read() -> None:
    assert (
        total("========= ERROR SUMMARY: 1,024 errors\n========= ERROR SUMMARY: 924 errors were not printed. Use ")
        == 1024
    )
    assert total("========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)") == 0
    assert total("========= COMPUTE-SANITIZER\n") is None
    assert unprinted("========= ERROR SUMMARY: 924 errors were not printed. Use --print-limit option to adjust")
    assert not unprinted("========= ERROR SUMMARY: 924 errors")


@pytest.mark.parametrize(
    ("log", "status", "said"),
    [
        ("========= Error: Device not supported. Please refer to the documentation", "unsupported", "another host"),
        ("========= Error: Unable to find injection library libsanitizer-collection.so", "mismatch", "driver"),
        ("========= Internal Error: something new", "failed", "something new"),
        ("", "failed", "no log"),
    ],
)
def test_a_tool_that_gave_nothing_says_why_and_what_to_do(log: str, status: str, said: str) -> None:
    found, advice = failure(log)
    assert found == status and said in advice


@given(
    st.lists(st.text(max_size=60), max_size=20), st.sampled_from(["memcheck", "racecheck", "initcheck", "synccheck"])
)
def test_any_text_is_read_without_an_error(lines: list[str], tool: SanitizerTool) -> None:
    read(tool, *lines)
    assert isinstance(reports("\n".join(lines)), tuple)


def test_the_summary_tells_the_first_finding_else_how_the_tools_ended() -> None:
    found = read("memcheck", *out_of_bounds(), *out_of_bounds(line=20))
    ends = (ToolResult(tool="memcheck", status="clean"), ToolResult(tool="racecheck", status="clean"))
    later = ToolResult(tool="initcheck", status="timeout")
    assert Sanitized(results=(*ends, later)).summary == "clean: memcheck, racecheck; timeout: initcheck"
    told = Sanitized(results=ends, findings=found)
    assert "cuda_source.cu:12" in told.summary and told.summary.endswith("(and 1 more)") and told.breaks_memory
