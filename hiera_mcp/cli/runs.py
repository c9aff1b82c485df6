"""`hiera-mcp runs [RUN]`: the recorded runs, or one of them with all that was decided and measured."""

import argparse
from datetime import datetime

import anyio

from hiera_mcp.cli.connection import local
from hiera_mcp.cli.options import add_json, add_settings, settings_of
from hiera_mcp.cli.output import ratio, table
from hiera_mcp.cli.report import run_lines
from hiera_mcp.client.report import RunView
from hiera_mcp.client.session import Session
from hiera_mcp.model.evaluation import Evaluation
from hiera_mcp.model.run import Run
from hiera_mcp.settings import Settings
from hiera_mcp.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_settings(parser)
    add_json(parser)
    parser.add_argument("run", nargs="?", metavar="RUN", help="id of a run; without it the latest runs are listed")
    parser.add_argument("--limit", type=int, default=20, help="how many to list (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    settings = settings_of(args)
    if args.run:
        print(anyio.run(_shown, settings, args.run, args.json))
    else:
        print(_listed(settings, args.limit, args.json))
    return 0


async def _shown(settings: Settings, run_id: str, json: bool) -> str:
    async with local(settings) as client:
        session = Session(client)
        if json:
            return await session.read(f"hiera://runs/{run_id}/trajectory")
        view = RunView.model_validate(await session.call("hiera_run_status", run_id=run_id))
        return "\n".join(run_lines(view))


def _listed(settings: Settings, limit: int, json: bool) -> str:
    store = Store.open(settings.database, settings.blobs)
    try:
        runs = store.runs(limit)
        about = {c.id: (c.task, c.target) for c in store.contracts()}
        best = {r.id: _best(store, r) for r in runs}
    finally:
        store.close()
    if json:
        return "[" + ",\n".join(r.model_dump_json() for r in runs) + "]"
    if not runs:
        return f"No runs yet in {settings.database}."
    rows = [(r.id, *about[r.contract_id], r.state, best[r.id], _minute(r.created_at)) for r in runs]
    return "\n".join(table(("run", "task", "target", "state", "best speed-up", "started"), rows))


def _best(store: Store, run: Run) -> str:
    """The best candidate's speed-up against eager PyTorch."""
    outcome = store.outcome(run.best_candidate_id) if run.best_candidate_id else None
    speedup = outcome.timing.speedup if isinstance(outcome, Evaluation) and outcome.timing else None
    return ratio(speedup)


def _minute(timestamp: str) -> str:
    """A stored time (UTC) on the reader's clock."""
    return datetime.fromisoformat(timestamp).astimezone().strftime("%Y-%m-%d %H:%M")
