"""Sessions of two candidates: which are needed, having them made, and what they said, as events of the run."""

from collections.abc import Mapping, Sequence
from functools import partial

from pydantic import JsonValue

from hiera_mcp.deps import Deps
from hiera_mcp.errors import HieraError
from hiera_mcp.model.evaluation import Comparison
from hiera_mcp.model.run import Candidate
from hiera_mcp.model.work import CompareRequest, PairReport, Rival
from hiera_mcp.planning.parents import in_one_session, turned
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.store import Store

PAIRED = "paired"
"""Event: two candidates were timed in one session, or could not be; data: candidate_id, other_id, report."""

Pairs = Mapping[tuple[str, str], PairReport]
"""(candidate, other) → the newest report."""


def pairs_of(store: Store, run_id: str) -> dict[tuple[str, str], PairReport]:
    """All sessions of a run."""
    events = store.events(run_id, limit=100_000)
    data = [e.data for e in events if e.kind == PAIRED and isinstance(e.data, dict)]
    return {(str(d["candidate_id"]), str(d["other_id"])): PairReport.model_validate(d["report"]) for d in data}


def comparisons_of(pairs: Pairs, candidate_id: str) -> dict[str, Comparison]:
    """What a candidate's sessions said, by the other candidate's id."""
    found: dict[str, Comparison] = {}
    for (this, other), report in pairs.items():
        comparison = in_one_session(report) if candidate_id in (this, other) else None
        if comparison is not None and this == candidate_id:
            found[other] = comparison
        elif comparison is not None:
            found[this] = turned(comparison)
    return found


def with_refusal(comparison: Comparison, pairs: Pairs, this: str, other: str) -> Comparison:
    """The comparison of two evaluations, which says why there was no session of both, if one was tried."""
    report = pairs.get((this, other)) or pairs.get((other, this))
    if report is None or not report.reason:
        return comparison
    return comparison.model_copy(update={"basis": f"{comparison.basis}; no session of both: {report.reason}"})


async def time_together(deps: Deps, this: Candidate, others: Sequence[Candidate], notify: Notify) -> None:
    """Have a candidate timed against each of the others, and store what was said. A failure of ours is stored as well."""
    for other in others:
        await notify(f"{this.name}: comparing with {other.name}", None)
        request = await deps.database(partial(_request, this, other))
        try:
            report = await deps.executor.compare(request, partial(_tell, notify, f"{this.name} and {other.name}"))
        except HieraError as e:
            report = PairReport(reason=str(e))
        data: JsonValue = {"candidate_id": this.id, "other_id": other.id, "report": report.model_dump(mode="json")}
        await deps.database(lambda s, data=data: s.add_event(PAIRED, data, this.run_id))


async def _tell(notify: Notify, names: str, message: str, fraction: float | None) -> None:
    await notify(f"{names}: {message}", None)


def _request(this: Candidate, other: Candidate, store: Store) -> CompareRequest:
    contract_id = store.run(this.run_id).contract_id
    return CompareRequest(
        contract=store.contract(contract_id),
        files=store.contract_files(contract_id),
        space=this.space,
        sources=this.sources,
        other=Rival(space=other.space, sources=other.sources),
    )
