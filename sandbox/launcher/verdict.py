"""Join what the judge said, how the runner ended and which deadline passed into one Evaluation. Pure."""

import signal

from hiera_mcp.model.evaluation import Build, Device, Evaluation, SpaceFinding, Status, Timing, Verification
from hiera_mcp.model.work import JudgeReport
from hiera_mcp.sandbox.isolation.box import Outcome

TAIL = 600
"""So many characters of a runner's output are quoted in the reason."""

LIMITS = {
    "memory_limit": "more memory than it may use",
    "disk_limit": "more disk space than it may use",
    "process_limit": "more processes than it may start",
    "output_limit": "more output than it may print",
}

TRUSTED = {
    "passed": Status.PASSED,
    "wrong_output": Status.WRONG_OUTPUT,
    "suspect": Status.SUSPECT,
    "candidate_error": Status.CRASH,
    "timeout": Status.TIMEOUT,
}
"""Outcomes that the judge alone decides."""


def not_built(build: Build, findings: tuple[SpaceFinding, ...], device: Device) -> Evaluation | None:
    """The evaluation of a candidate that did not compile or left its space; None when it did neither."""
    if not build.ok:
        return Evaluation(status=Status.COMPILE_ERROR, reason=_first_error(build), build=build, device=device)
    if findings:
        reason = "outside its space: " + "; ".join(_finding(f) for f in findings)
        return Evaluation(
            status=Status.INVALID_SPACE, reason=reason, build=build, space_findings=findings, device=device
        )
    return None


def judged(report: JudgeReport, outcome: Outcome, deadline: str | None) -> Evaluation:
    """The evaluation of a candidate that ran.

    Args:
        report: the judge's report.
        outcome: how the runner ended. `killed` means that it was alive until we ended it.
        deadline: which deadline passed, in words; None when none did.
    """
    if deadline is not None:
        return _ended(Status.TIMEOUT, deadline, outcome)
    if report.outcome in TRUSTED:
        status = TRUSTED[report.outcome]
        timing = report.timing if status is Status.PASSED else None
        return _ended(status, report.reason, outcome, report.verification, timing)
    return _lost(outcome, f" during {report.stage}", report.reason)


def _lost(outcome: Outcome, stage: str, said: str) -> Evaluation:
    """The runner did not survive; `outcome` says why."""
    if outcome.ended in LIMITS:
        return _ended(Status.RESOURCE_LIMIT, f"ended{stage}: it took {LIMITS[outcome.ended]}", outcome)
    if outcome.ended in ("killed", "timeout"):
        return _ended(Status.CRASH, f"closed its channel{stage} and went on running; {said}", outcome)
    if outcome.ended == "signal":
        return _ended(Status.CRASH, f"ended by {signal_name(outcome.code)}{stage}{_quoted(outcome.output)}", outcome)
    return _ended(
        Status.CRASH,
        f"exited with status {outcome.code}{stage}, before its work was done{_quoted(outcome.output)}",
        outcome,
    )


def _ended(
    status: Status,
    reason: str,
    outcome: Outcome,
    verification: Verification | None = None,
    timing: Timing | None = None,
) -> Evaluation:
    return Evaluation(status=status, reason=reason, verification=verification, timing=timing, log=outcome.output)


def signal_name(number: int) -> str:
    """`SIGSEGV (Segmentation fault)`, or `signal 77` when the system has no name for it."""
    try:
        known = signal.Signals(number)
    except ValueError:
        return f"signal {number}"
    return f"{known.name} ({signal.strsignal(number)})"


def tail(output: str, size: int = TAIL) -> str:
    text = output.strip()
    return text if len(text) <= size else "… " + text[-size:]


def _quoted(output: str) -> str:
    text = tail(output)
    return f"; its last output: {text}" if text else ""


def _first_error(build: Build) -> str:
    for d in build.diagnostics:
        if d.severity == "error":
            place = f"{d.file}:{d.line}: " if d.line is not None else f"{d.file}: " if d.file else ""
            return f"does not compile: {place}{d.text}"
    return f"does not compile: {tail(build.log) or 'the compiler gave no message'}"


def _finding(finding: SpaceFinding) -> str:
    allowed = f"allowed in {finding.smallest_space}" if finding.smallest_space else "allowed in no space"
    return f"{finding.evidence.replace('_', ' ')} `{finding.what}` ({allowed})"
