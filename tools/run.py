"""hiera_run_start, hiera_run_status, hiera_run_finish: one optimisation of one contract."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import anyio.to_thread
from pydantic import Field

from hiera_mcp.errors import RequestError, StoreError
from hiera_mcp.model.base import Model
from hiera_mcp.model.run import Budget, Run
from hiera_mcp.model.space import Space, Target
from hiera_mcp.model.switches import Switches, switches_of
from hiera_mcp.settings import Settings
from hiera_mcp.store import Store
from hiera_mcp.tools.base import ADDS, ENSURES, READS, ContractId, Ctx, RunId, Tool, deps_of
from hiera_mcp.tools.run_state import RunState, load_run
from hiera_mcp.tools.run_view import run_view, trajectory_uri
from hiera_mcp.tools.views import RunView

PLAN = "For ablations, what planning does without: fixed-space=SPACE, no-directions, no-contract-files, no-memory."


class StartedView(Model):
    """A run that has nothing yet."""

    run_id: str
    contract_id: str
    task: str
    target: Target
    state: str
    round: int
    space: Space | None
    """Null: to be decided."""
    plan: tuple[str, ...]
    """What the planner does without."""
    trajectory_uri: str
    database: str
    """Path of the SQLite file."""
    next_step: str


class FinishView(Model):
    """A finished run and what was exported."""

    run: RunView
    export_dir: str
    """Folder on the server's host."""
    files: tuple[str, ...]
    next_step: str


async def hiera_run_start(
    contract_id: ContractId,
    ctx: Ctx,
    goal: Annotated[str, Field(max_length=2000, description="What is wanted, in your words.")] = "",
    rounds: Annotated[int, Field(ge=1, le=100)] = 3,
    candidates_per_round: Annotated[int, Field(ge=1, le=32)] = 6,
    plan: Annotated[list[str], Field(max_length=8, description=PLAN)] = [],  # noqa: B006 - a schema's default
) -> StartedView:
    """Start an optimisation run of a contract.

    Use it once per optimisation, after hiera_contract_build. The budget is HIERA's own by default: 3 rounds of 6
    candidates. Returns the run with its run_id, which is valid for as long as the database exists.
    Next: hiera_plan_space.
    """
    deps = deps_of(ctx)
    budget = Budget(rounds=rounds, candidates_per_round=candidates_per_round)
    switches = switches_of([*deps.settings.plan, *plan])
    run = await deps.database(lambda s: _start(s, contract_id, goal, budget, switches))
    return _started(await deps.database(lambda s: load_run(s, run.id)), deps.settings)


def _start(store: Store, contract_id: str, goal: str, budget: Budget, switches: Switches) -> Run:
    fixed, spaces = switches.fixed_space, store.contract(contract_id).spaces
    if fixed is not None and fixed not in spaces:
        raise RequestError(f"{fixed} is not a space of this contract's target.", valid=spaces)
    return store.start_run(contract_id, goal, budget, switches)


def _started(state: RunState, settings: Settings) -> StartedView:
    run, contract = state.run, state.contract
    return StartedView(
        run_id=run.id,
        contract_id=run.contract_id,
        task=contract.task.name,
        target=contract.target,
        state=run.state,
        round=run.round,
        space=run.space,
        plan=run.switches.words,
        trajectory_uri=trajectory_uri(run.id),
        database=str(settings.database),
        next_step=state.next_step,
    )


async def hiera_run_status(run_id: RunId, ctx: Ctx) -> RunView:
    """See where a run stands: round, budget, best, parents, all candidates and decisions, open jobs, next step.

    Use it whenever you lost track, after an interruption, and to choose parents. Reads only.
    Next: follow next_step.
    """
    deps = deps_of(ctx)
    return run_view(await deps.database(lambda s: load_run(s, run_id)), deps.settings)


async def hiera_run_finish(run_id: RunId, ctx: Ctx) -> FinishView:
    """Close a run and export its winner: sources, contract files and a summary, into a folder on the server's host.

    Use it when the rounds are spent or the goal is reached. The run takes no more decisions or candidates; everything
    stays readable. Calling it again exports again. Refused while work of the run is open.
    Next: hiera_lesson_record, for what the next run should know.
    """
    deps = deps_of(ctx)
    state = await deps.database(lambda s: load_run(s, run_id))
    _check_idle(state)
    files = await deps.database(lambda s: s.contract_files(state.run.contract_id))
    await deps.database(lambda s: s.finish_run(run_id))
    view = run_view(await deps.database(lambda s: load_run(s, run_id)), deps.settings)
    folder = deps.settings.data_dir / "exports" / run_id
    written = await anyio.to_thread.run_sync(_export, folder, export_files(state, view, files))
    step = "Record what the next run should know with hiera_lesson_record(title=..., text=..., candidate_ids=[...])."
    return FinishView(run=view, export_dir=str(folder), files=written, next_step=step)


def _check_idle(state: RunState) -> None:
    if state.open_jobs:
        ids = [job.id for job in state.open_jobs]
        raise RequestError(
            f"Work of the run is open: {', '.join(ids)}.",
            todo=f"Wait with hiera_job(job_id='{ids[0]}'), or cancel it.",
        )


def export_files(state: RunState, view: RunView, contract_files: Mapping[str, str]) -> dict[str, str]:
    """What is exported, name → text: the contract, the winner's sources over its skeleton, summary.json."""
    best = next((c for c in state.candidates if c.id == state.best_id), None)
    return {
        **contract_files,
        **(best.sources if best else {}),
        "summary.json": json.dumps(view.model_dump(mode="json", exclude={"next_step"}), indent=1) + "\n",
    }


def _export(folder: Path, files: Mapping[str, str]) -> tuple[str, ...]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)
    except OSError as error:
        raise StoreError(f"The export to {folder} failed: {error}.", todo="Make room or rights there.") from error
    return tuple(sorted(files))


START = Tool(hiera_run_start, "Start a run", ADDS)
STATUS = Tool(hiera_run_status, "Status of a run", READS)
FINISH = Tool(hiera_run_finish, "Finish a run", ENSURES)
