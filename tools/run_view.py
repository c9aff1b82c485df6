"""A run as the agent sees it: pure builders."""

from hiera_mcp.settings import Settings
from hiera_mcp.tools.run_state import RunState
from hiera_mcp.tools.views import OpenJob, RunView

MAX_ROWS = 24
"""Candidates shown; clients cut results above about 50,000 characters."""


MAX_DECISIONS = 30
"""Decisions shown; each may be recorded again as often as an agent likes."""


def trajectory_uri(run_id: str) -> str:
    """Where all of a run is."""
    return f"hiera://runs/{run_id}/trajectory"


def run_view(state: RunState, settings: Settings) -> RunView:
    """Where the run stands, with the next step."""
    run, rows, decisions = state.run, state.rows, state.decision_rows
    by_id = {row.candidate_id: row for row in rows}
    return RunView(
        run_id=run.id,
        contract_id=run.contract_id,
        task=state.contract.task.name,
        target=state.contract.target,
        state=run.state,
        round=run.round,
        budget=run.budget,
        goal=run.goal,
        space=run.space,
        direction=run.direction,
        best=by_id.get(state.best_id or ""),
        parents=tuple(by_id[i] for i in state.parent_ids),
        candidates=rows[-MAX_ROWS:],
        earlier_candidates=max(0, len(rows) - MAX_ROWS),
        decisions=decisions[-MAX_DECISIONS:],
        earlier_decisions=max(0, len(decisions) - MAX_DECISIONS),
        open_jobs=tuple(OpenJob.of(job) for job in state.open_jobs),
        plan=run.switches.words,
        trajectory_uri=trajectory_uri(run.id),
        database=str(settings.database),
        next_step=state.next_step,
    )
