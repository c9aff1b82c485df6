"""How the judge's word, the runner's end and the deadlines become one status."""

import signal
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.model.evaluation import Build, Device, SpaceFinding, Status, Verification
from hiera_mcp.model.work import JudgeReport
from hiera_mcp.sandbox.compilers.build import Built
from hiera_mcp.sandbox.isolation.box import Outcome
from hiera_mcp.sandbox.launcher.verdict import judged, not_built

HERE = Device(name="a processor", target="cpu", isolation="bubblewrap")
VERIFIED = Verification(trials=5, worst=None, oracle="float64")


def report(outcome: Any, **rest: Any) -> JudgeReport:
    return JudgeReport.model_validate({"outcome": outcome, "stage": "verify", "reason": "as the judge saw it", **rest})


def end(ended: Any, code: int = 0, output: str = "") -> Outcome:
    return Outcome(ended, code, output, len(output), 1.0)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("passed", Status.PASSED),
        ("wrong_output", Status.WRONG_OUTPUT),
        ("suspect", Status.SUSPECT),
        ("candidate_error", Status.CRASH),
        ("timeout", Status.TIMEOUT),
    ],
)
def test_what_the_judge_decides_stands_with_its_reason(said: str, status: Status):
    result = judged(report(said, verification=VERIFIED), end("killed"), None)
    assert (result.status, result.reason, result.verification) == (status, "as the judge saw it", VERIFIED)


def test_a_fault_names_its_signal_its_stage_and_the_last_output():
    result = judged(report("runner_lost"), end("signal", signal.SIGSEGV, "about to fail\n"), None)
    assert result.status is Status.CRASH
    assert "SIGSEGV" in result.reason and "verify" in result.reason and "about to fail" in result.reason
    assert result.log == "about to fail\n"


@pytest.mark.parametrize("how", [end("signal", signal.SIGSEGV), end("exit", 3)])
def test_what_the_judge_knows_about_a_lost_runner_reaches_the_reader(how: Outcome):
    result = judged(report("runner_lost", reason="the runner ended (inputs are mapped read-only)"), how, None)
    assert result.status is Status.CRASH and "inputs are mapped read-only" in result.reason


def test_an_exit_without_a_report_is_a_crash_even_with_status_0():
    result = judged(report("runner_lost", stage="load"), end("exit", 0), None)
    assert result.status is Status.CRASH
    assert "status 0 during load" in result.reason


@pytest.mark.parametrize("limit", ["memory_limit", "disk_limit", "process_limit", "output_limit"])
def test_a_limit_is_a_resource_limit_and_says_which(limit: str):
    result = judged(report("runner_lost"), end(limit), None)
    assert result.status is Status.RESOURCE_LIMIT
    assert limit.split("_")[0].replace("process", "processes") in result.reason


def test_a_deadline_of_the_launcher_is_a_timeout_whatever_the_judge_saw_afterwards():
    result = judged(report("runner_lost"), end("killed"), "not done within 3 s; last: timing")
    assert (result.status, result.reason) == (Status.TIMEOUT, "not done within 3 s; last: timing")


def test_a_runner_that_closes_its_channel_and_goes_on_is_a_crash():
    assert judged(report("runner_lost"), end("killed"), None).status is Status.CRASH


def built(failure: Any = None, reason: str = "", findings: tuple[SpaceFinding, ...] = ()) -> Built:
    build = Build(ok=failure is None, command="g++", seconds=1)
    return Built(Path("/nowhere"), build, findings, {}, failure, reason, "c_abi", "g++ 12")


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        ("compile_error", Status.COMPILE_ERROR),
        ("timeout", Status.TIMEOUT),
        ("resource_limit", Status.RESOURCE_LIMIT),
    ],
)
def test_a_build_that_fails_keeps_the_compilers_reason(failure: str, status: Status):
    result = not_built(built(failure, "cpu_source.cpp:3: expected ';'"), HERE)
    assert result is not None and (result.status, result.reason) == (status, "cpu_source.cpp:3: expected ';'")


@pytest.mark.parametrize("failure", [None, "compile_error"])
def test_a_candidate_outside_its_space_says_what_and_where_it_would_be_legal(failure: str | None):
    finding = SpaceFinding(evidence="needed_library", what="libcblas.so", smallest_space="cpp_libraries")
    result = not_built(built(failure, "no such file", (finding,)), HERE)
    assert result is not None and result.status is Status.INVALID_SPACE
    assert result.reason == "outside its space: needed library `libcblas.so` (allowed in cpp_libraries)"


def test_a_good_build_inside_its_space_goes_on():
    assert not_built(built(), HERE) is None
