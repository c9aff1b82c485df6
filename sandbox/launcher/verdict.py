"""Join what the judge said, how the runner ended and which deadline passed into one Evaluation. Pure."""

import signal

from hiera_mcp.model.evaluation import Device, Evaluation, SpaceFinding, Status, Timing, Verification
from hiera_mcp.model.work import JudgeReport
from hiera_mcp.sandbox.compilers.build import Built
from hiera_mcp.sandbox.isolation.box import Outcome

TAIL = 600
"""So many characters of a runner's output are quoted in the reason."""

LIMITS = {
    "memory_limit": "more memory than it may use",
    "disk_limit": "more disk space than it may use",
    "process_limit": "more processes than it may start",
    "output_limit": "more output than it may print",
}

FAILURES = {
    "compile_error": Status.COMPILE_ERROR,
    "timeout": Status.TIMEOUT,
    "resource_limit": Status.RESOURCE_LIMIT,
}
"""How a build can fail."""

TRUSTED = {
    "passed": Status.PASSED,
    "wrong_output": Status.WRONG_OUTPUT,
    "suspect": Status.SUSPECT,
    "candidate_error": Status.CRASH,
    "timeout": Status.TIMEOUT,
}
"""Outcomes that the judge alone decides."""


def not_built(built: Built, device: Device) -> Evaluation | None:
    """The evaluation of a candidate that did not compile or left its space; None when it did neither.

    A build that failed because of what lies outside the space is the space's matter, not the compiler's.
    """
    if built.findings:
        status, reason = Status.INVALID_SPACE, "outside its space: " + "; ".join(_finding(f) for f in built.findings)
    elif built.failure is not None:
        status, reason = FAILURES[built.failure], built.reason
    else:
        return None
    return Evaluation(
        status=status,
        reason=reason,
        build=built.build,
        space_findings=built.findings,
        device=device,
        log=built.build.log,
    )


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
    """The runner did not survive; `outcome` says how, and what the judge `said` may tell why."""
    if outcome.ended in LIMITS:
        return _ended(Status.RESOURCE_LIMIT, f"ended{stage}: it took {LIMITS[outcome.ended]}", outcome)
    if outcome.ended in ("killed", "timeout"):
        return _ended(Status.CRASH, f"closed its channel{stage} and went on running; {said}", outcome)
    if outcome.ended == "signal":
        how = f"ended by {signal_name(outcome.code)}{stage}"
    else:
        how = f"exited with status {outcome.code}{stage}, before its work was done"
    return _ended(Status.CRASH, f"{how}: {said}{_quoted(outcome.output)}", outcome)


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


def _finding(finding: SpaceFinding) -> str:
    allowed = f"allowed in {finding.smallest_space}" if finding.smallest_space else "allowed in no space"
    return f"{finding.evidence.replace('_', ' ')} `{finding.what}` ({allowed})"
