"""Runs, rounds, candidates, jobs and events: what a trajectory consists of."""

from enum import StrEnum
from typing import Literal

from pydantic import Field, JsonValue

from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.space import Direction, Space
from hiera_mcp.model.switches import Switches


class Budget(Model):
    """How much a run may spend. HIERA's own: 3 rounds × 6 candidates."""

    rounds: int = Field(default=3, ge=1, le=100)
    candidates_per_round: int = Field(default=6, ge=1, le=32)


class Run(Model):
    """One optimisation of one contract."""

    id: Text
    contract_id: Text
    goal: str
    budget: Budget
    state: Literal["open", "finished"]
    round: int
    """Number of the current round, counted from 1."""
    space: Space | None
    """The space decided last."""
    direction: Direction | None
    created_at: Text
    finished_at: str | None = None
    best_candidate_id: str | None = None
    switches: Switches = Switches()


class Candidate(Model):
    """One source submitted for a contract inside a run."""

    id: Text
    run_id: Text
    round: int
    name: Text
    space: Space
    direction: Direction | None = None
    parent_id: str | None = None
    sources: dict[str, str]
    """File name → text: cuda_source.cu or cpu_source.cpp, and in the PyTorch space model_new.py."""
    idea: str = ""
    """What the agent tried, in a line."""


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"

    @property
    def ended(self) -> bool:
        return self not in (JobState.QUEUED, JobState.RUNNING)


class Job(Model):
    """One piece of long work. Lives in the store, so that it outlives a call, a client and a server."""

    id: Text
    kind: Literal["contract_build", "check", "evaluate", "profile", "sanitize"]
    state: JobState
    run_id: str | None
    message: str
    progress: float | None
    """0 to 1, when it can be told."""
    result: JsonValue
    error: JsonValue
    """`HieraError.as_dict()`, when the state is failed or interrupted."""
    created_at: Text
    started_at: str | None
    ended_at: str | None


class Event(Model):
    """One line of the append-only log."""

    n: int
    run_id: str | None
    at: Text
    kind: Text
    data: JsonValue
