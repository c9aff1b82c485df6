"""Candidates as rows: pure builders."""

from collections.abc import Iterable, Mapping

from hiera_mcp.model.contract import Contract
from hiera_mcp.model.evaluation import Comparison, Diagnostic, Evaluation, NotRun
from hiera_mcp.model.run import Candidate
from hiera_mcp.model.sanitizer import Sanitized
from hiera_mcp.tools.sanitized import with_check
from hiera_mcp.tools.views import CandidateRow

MAX_DIAGNOSTICS = 3
MAX_FINDINGS = 8
MAX_TEXT = 600
"""Characters of a reason or a message; the whole of it is in the log."""

Outcome = Evaluation | NotRun


def candidate_row(
    candidate: Candidate,
    outcome: Outcome | None,
    contract: Contract,
    *,
    best_id: str | None = None,
    versus_parent: Comparison | None = None,
    why_pending: str = "",
) -> CandidateRow:
    """The row of one candidate. Without an outcome it is `pending`, or `not_run` when `why_pending` says why."""
    base = CandidateRow(
        candidate_id=candidate.id,
        name=candidate.name,
        round=candidate.round,
        space=candidate.space,
        direction=candidate.direction,
        status="not_run" if why_pending else "pending",
        reason=why_pending or "It has no result yet.",
        is_best=candidate.id == best_id,
        parent_id=candidate.parent_id,
        source_uri=f"hiera://candidates/{candidate.id}/source",
        log_uri=f"hiera://candidates/{candidate.id}/log",
        versus_parent=versus_parent,
    )
    return base if outcome is None else base.model_copy(update=_result(outcome, contract))


def _result(outcome: Outcome, contract: Contract) -> dict[str, object]:
    if isinstance(outcome, NotRun):
        return {"status": "not_run", "reason": shortened(outcome.reason)}
    found = {
        "status": outcome.status,
        "reason": shortened(outcome.reason),
        "space_findings": outcome.space_findings[:MAX_FINDINGS],
        "diagnostics": first_errors(outcome.build.diagnostics) if outcome.build else (),
        "margin": outcome.verification.worst.error if outcome.verification and outcome.verification.worst else None,
    }
    return found | _times(outcome, contract)


def _times(outcome: Evaluation, contract: Contract) -> dict[str, object]:
    timing = outcome.timing
    if timing is None:
        return {}
    return {
        "time_s": timing.candidate,
        "reference_s": timing.reference,
        "speedup": timing.speedup,
        "floor_ratio": timing.candidate.median / contract.floor.seconds if contract.floor.seconds else None,
    }


def first_errors(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The errors that a reader needs first."""
    errors = [d for d in diagnostics if d.severity == "error"][:MAX_DIAGNOSTICS]
    return tuple(d.model_copy(update={"text": shortened(d.text)}) for d in errors)


def shortened(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} … [{len(text) - MAX_TEXT} characters cut]"


def rows(
    candidates: Iterable[Candidate],
    outcomes: Mapping[str, Outcome],
    contract: Contract,
    *,
    best_id: str | None,
    versus: Mapping[str, Comparison],
    pending: Mapping[str, str],
    checked: Mapping[str, Sanitized],
) -> tuple[CandidateRow, ...]:
    """Rows in the order of `candidates`; `versus`, `pending` and `checked` by candidate id."""
    found = (
        candidate_row(
            c,
            outcomes.get(c.id),
            contract,
            best_id=best_id,
            versus_parent=versus.get(c.id),
            why_pending=pending.get(c.id, ""),
        )
        for c in candidates
    )
    return tuple(
        row.model_copy(update={"reason": with_check(row.reason, checked.get(row.candidate_id))}) for row in found
    )
