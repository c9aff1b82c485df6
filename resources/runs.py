"""Runs and their trajectories."""

from typing import Any

from hiera_mcp.resources.base import Ctx, Resource, as_json, deps_of
from hiera_mcp.store import Store


async def run(run_id: str, ctx: Ctx) -> str:
    """A run in short: the run, its decisions and the status of each candidate."""
    return as_json(await deps_of(ctx).database(lambda s: _summary(s, run_id)))


async def trajectory(run_id: str, ctx: Ctx) -> str:
    """All that happened in a run: decisions with scores and evidence, candidates with sources and evaluations, events."""
    return as_json(await deps_of(ctx).database(lambda s: _trajectory(s, run_id)))


def _summary(store: Store, run_id: str) -> dict[str, Any]:
    found = store.run(run_id)
    outcomes = store.outcomes(run_id)
    candidates = [
        {"id": c.id, "name": c.name, "round": c.round, "status": _status(outcomes.get(c.id))}
        for c in store.candidates(run_id)
    ]
    decisions = [
        {"id": d.id, "round": d.round, "kind": d.decision.kind, "choice": d.decision.choice}
        for d in store.decisions(run_id)
    ]
    return {"run": found, "decisions": decisions, "candidates": candidates}


def _status(outcome: object) -> str:
    return "pending" if outcome is None else str(getattr(outcome, "status", "not_run"))


def _trajectory(store: Store, run_id: str) -> dict[str, Any]:
    found = store.run(run_id)
    outcomes = store.outcomes(run_id)
    return {
        "run": found,
        "contract_id": found.contract_id,
        "decisions": store.decisions(run_id),
        "candidates": [{"candidate": c, "outcome": outcomes.get(c.id)} for c in store.candidates(run_id)],
        "jobs": store.jobs(run_id, limit=10_000),
        "events": store.events(run_id, limit=100_000),
    }


RUN = Resource("hiera://runs/{run_id}", run, "Run")
TRAJECTORY = Resource("hiera://runs/{run_id}/trajectory", trajectory, "Trajectory of a run")
