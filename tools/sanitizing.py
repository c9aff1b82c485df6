"""Have compute-sanitizer look at candidates: at one on request, and at each new best on a GPU.

That takes longer than all else, so a new best is looked at by a job of its own, beside what the client does next.
"""

from functools import partial

from pydantic import JsonValue

from hiera_mcp.deps import Deps
from hiera_mcp.errors import HieraError, RequestError
from hiera_mcp.model.evaluation import Evaluation, NotRun, Status
from hiera_mcp.model.run import Candidate
from hiera_mcp.model.sanitizer import SANITIZERS, Sanitized, SanitizeRequest, ToolResult
from hiera_mcp.model.space import is_cpu
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.store import Store
from hiera_mcp.tools.run_state import load_run
from hiera_mcp.tools.sanitized import sanitizer_view

NEW_BEST_S = 60.0
"""So long may each tool take on a new best: each keeps the GPU from other work meanwhile."""
NOTHING_BUILT = (Status.COMPILE_ERROR, Status.INVALID_SPACE)


async def watch_best(deps: Deps, run_id: str) -> None:
    """Submit a job that looks at the run's best, where that has not been done and is not under way."""
    best = await deps.database(partial(_unwatched_best, run_id))
    if best is not None:
        asked: JsonValue = {"candidate_id": best.id}
        await deps.jobs.submit("sanitize", partial(_look, deps, best), run_id=run_id, request=asked, key=best.id)


async def _look(deps: Deps, best: Candidate, notify: Notify, _: object) -> JsonValue:
    """The work of that job. A best that touches memory it must not makes room for the next one, which is looked at too."""
    found = await on_request(deps, best, NEW_BEST_S, notify, None)
    await watch_best(deps, best.run_id)
    return found


async def sanitize(deps: Deps, candidate: Candidate, notify: Notify, tool_s: float) -> Sanitized:
    """Run all tools and store what they said. A failure of ours is stored as such: it is no word against the candidate."""
    request = await deps.database(partial(_request, candidate, tool_s))

    async def tell(message: str, fraction: float | None) -> None:
        await notify(f"{candidate.name}: {message}", None)

    try:
        found = await deps.executor.sanitize(request, tell)
    except HieraError as e:
        found = Sanitized(results=tuple(ToolResult(tool=t, status="failed", note=str(e)) for t in SANITIZERS))
    await deps.database(lambda s: s.put_sanitized(candidate.id, found))
    return found


async def on_request(deps: Deps, candidate: Candidate, tool_s: float, notify: Notify, _: object) -> JsonValue:
    """The work of a job: all tools on one candidate, and whether the run has another best now."""
    found = await sanitize(deps, candidate, notify, tool_s)
    await deps.database(partial(_set_best, candidate.run_id))
    return {"sanitizer": sanitizer_view(found, candidate.id).model_dump(mode="json")}


def runnable(store: Store, candidate_id: str) -> Candidate:
    """The candidate, if there is something to run.

    Raises:
        RequestError: it was not built, or has no result yet.
    """
    candidate, outcome = store.candidate(candidate_id), store.outcome(candidate_id)
    if isinstance(outcome, NotRun) or (isinstance(outcome, Evaluation) and outcome.status not in NOTHING_BUILT):
        return candidate
    found = "has no result yet" if outcome is None else f"ended as {outcome.status.value}"
    raise RequestError(
        f"Candidate {candidate_id} {found}; compute-sanitizer needs one that was built.",
        todo="hiera_run_status shows how each candidate ended.",
    )


def _unwatched_best(run_id: str, store: Store) -> Candidate | None:
    state = load_run(store, run_id)
    if state.best_id is None or state.best_id in state.checked or is_cpu(state.contract.target):
        return None
    return store.candidate(state.best_id)


def _set_best(run_id: str, store: Store) -> None:
    state = load_run(store, run_id)
    if state.best_id != state.run.best_candidate_id:
        store.set_best(run_id, state.best_id)


def _request(candidate: Candidate, tool_s: float, store: Store) -> SanitizeRequest:
    contract_id = store.run(candidate.run_id).contract_id
    return SanitizeRequest(
        contract=store.contract(contract_id),
        files=store.contract_files(contract_id),
        space=candidate.space,
        sources=candidate.sources,
        tool_s=tool_s,
    )
