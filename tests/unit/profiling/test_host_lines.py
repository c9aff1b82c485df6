"""Samples on cpu become the same lines as a GPU's: the candidate's by line, those of others by library and function."""

from typing import Any

import pytest

from hiera_mcp.model.profile import Profile
from hiera_mcp.model.work import HostSamples
from hiera_mcp.sandbox.profiling.host_code import Code
from hiera_mcp.sandbox.profiling.host_lines import instructions, raw_launch, trimmed, with_lines, without_lines
from hiera_mcp.sandbox.profiling.listing import listing

SOURCES = {"cpu_source.cpp": "int a;\nx = y / z;\nreturn 0;\n"}
CODE = (
    Code(0x10, "vdivss %xmm1,%xmm0,%xmm0", "hiera_run", 60),
    Code(0x14, "vaddss %xmm1,%xmm0,%xmm0", "hiera_run", 10),
    Code(0x18, "ret", "hiera_run"),
    Code(0x20, "mov %rax,%rbx", "std::__introsort_loop<float*>", 10),
)
PLACES = {0x10: ("cpu_source.cpp", 2), 0x14: ("cpu_source.cpp", 2), 0x18: ("cpu_source.cpp", 3)}
BARE = Profile(bottleneck="latency", summary="Slow.", metrics=(), counters="Accounts.")
BARRIER = {"library": "libgomp.so.1", "function": "GOMP_barrier", "samples": 15}
LOOP = {"library": "libpython3.11.so.1.0", "function": "PyEval", "samples": 50}


def samples(*others: dict[str, Any], **changes: Any) -> HostSamples:
    own = [(c.address, c.samples) for c in CODE if c.samples]
    return HostSamples.model_validate({"calls": 3, "full": 0, "own": [*own, (0x99, 5)], "others": others, **changes})


def lines_of(profile: Profile) -> list[tuple[str, str, int, float]]:
    return [(line.where, line.text, line.samples, line.share) for line in profile.launches[0].lines]


def test_lines_and_functions_stand_together_the_costly_ones_first() -> None:
    profile = with_lines(BARE, samples(BARRIER), CODE, PLACES, SOURCES)
    assert lines_of(profile) == [
        ("cpu_source.cpp:2", "x = y / z;", 70, 0.7),
        ("libgomp.so.1", "GOMP_barrier", 15, 0.15),
        ("case0.so", "std::__introsort_loop<float*>", 10, 0.1),
        ("case0.so", "", 5, 0.05),
    ]
    assert profile.launches[0].lines[0].instruction == "vdivss %xmm1,%xmm0,%xmm0"


def test_the_share_outside_of_the_candidates_library_is_told() -> None:
    profile = with_lines(BARE, samples(BARRIER), CODE, PLACES, SOURCES)
    assert {m.name: m.value for m in profile.metrics} == {"outside_pct": 15.0}
    assert profile.summary == (
        "Slow. Most samples: cpu_source.cpp:2 (70%). 15% lies outside of its own code: libgomp.so.1 15%."
    )
    assert "100 samples of all threads in 3 further calls" in profile.counters


def test_the_runners_own_loop_is_left_out_but_a_models_interpreter_counts() -> None:
    assert trimmed(samples(BARRIER, LOOP), is_python=False).others == samples(BARRIER).others
    assert trimmed(samples(BARRIER, LOOP), is_python=True) == samples(BARRIER, LOOP)


def test_a_model_without_a_library_of_its_own_is_told_by_function() -> None:
    torch = {"library": "libtorch_cpu.so", "function": "sgemm", "samples": 90}
    found = HostSamples.model_validate({"calls": 1, "full": 1, "own": [], "others": [torch, {**LOOP, "samples": 10}]})
    profile = with_lines(BARE, found, (), {}, {"model_new.py": ""})
    assert lines_of(profile)[0] == ("libtorch_cpu.so", "sgemm", 90, 0.9)
    assert "Most samples: libtorch_cpu.so, sgemm (90%)" in profile.summary and "not of the end" in profile.counters


def test_code_that_belongs_to_no_file_has_a_name() -> None:
    found = samples({"library": "", "function": "", "samples": 900})
    assert lines_of(with_lines(BARE, found, CODE, PLACES, SOURCES))[0][:2] == ("generated code", "")


def test_without_samples_there_is_null_with_the_reason() -> None:
    profile = without_lines(BARE, "the kernel refuses")
    assert [(m.name, m.value, m.reason) for m in profile.metrics] == [("outside_pct", None, "the kernel refuses")]
    assert not profile.launches and "No source lines: the kernel refuses." in profile.counters


def test_no_sample_at_all_divides_by_nothing() -> None:
    empty = HostSamples(calls=1, full=0, own=(), others=())
    profile = with_lines(BARE, empty, (), {}, SOURCES)
    assert not profile.launches and profile.metrics[0].reason == "nothing was sampled"


def test_why_no_line_is_the_candidates_own_is_told() -> None:
    profile = with_lines(BARE, samples(), (), {}, SOURCES, missing="install binutils")
    assert lines_of(profile) == [("case0.so", "", 85, 1.0)]
    assert profile.counters.endswith("None of its own: install binutils.")


def test_the_machine_code_is_found_by_its_line() -> None:
    shown = listing([raw_launch(instructions(CODE, PLACES))]).splitlines()
    assert [row.split()[1] for row in shown if "cpu_source.cpp:2 " in row] == ["60", "10"]


@pytest.mark.parametrize("wrong", [{"calls": -1}, {"own": [(1,)]}, {"others": [{**BARRIER, "samples": -5}]}])
def test_a_claim_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        samples(**wrong) if "others" not in wrong else samples(*wrong["others"])
