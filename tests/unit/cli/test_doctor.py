"""The denial matrix as `hiera-mcp doctor` prints it."""

from hiera_mcp.cli.doctor import denials, lines_of
from hiera_mcp.model.work import DoctorReport, IsolationReport
from hiera_mcp.sandbox.isolation.probe import judge

GOOD = judge({"write_work": "allowed", "read_secret": "ENOENT", "tcp": "EACCES"})
LEAKY = judge({"write_work": "EROFS", "read_secret": "allowed"})


def report(name: str, probes: tuple[object, ...], reason: str = "", launch_ms: float | None = None) -> IsolationReport:
    return IsolationReport.model_validate(
        {"backend": name, "usable": not reason, "reason": reason, "probes": probes, "launch_ms": launch_ms}
    )


def row(lines: list[str], name: str) -> list[str]:
    return next(line for line in lines if line.startswith(name)).removeprefix(name).split()


def test_each_probe_of_each_backend_is_denied_absent_or_allowed():
    lines = denials((report("one", GOOD), report("other", GOOD)))
    assert row(lines, "write work") == ["allowed", "allowed", "allowed"]
    assert row(lines, "read secret") == ["denied", *["absent", "(ENOENT)"] * 2]
    assert row(lines, "tcp") == ["denied", *["denied", "(EACCES)"] * 2]


def test_what_must_not_be_is_marked_and_what_was_not_tried_is_a_dash():
    lines = denials((report("one", GOOD), report("leaky", LEAKY, "it fails"), report("none", ())))
    assert "none" not in lines[0]
    assert row(lines, "read secret")[-4:] == ["←", "must", "not", "be"]
    assert row(lines, "write work")[-5:] == ["(EROFS)", "←", "must", "not", "be"]
    assert row(lines, "tcp")[-1] == "–"
    assert not any("must not be" in line for line in denials((report("one", GOOD),)))


def test_the_report_has_the_cost_of_a_launch_and_the_reason_of_a_refusal():
    isolation = (report("one", GOOD, launch_ms=11.7), report("leaky", LEAKY, "it fails"))
    whole = DoctorReport(isolation=isolation, chosen="one", targets=(), gpus=(), tools={}, advice=())
    lines = lines_of(whole)
    assert row(lines, "one") == ["yes", "12", "ms", "in", "use"]
    assert row(lines, "leaky") == ["no", "–", "it", "fails"]
