"""Memory: what rounds of earlier runs brought, in the form in which it is stored, moved between hosts and counted."""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Literal, Self, get_args

from pydantic import Field, model_validator

from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.contract import Features, Floor, OperatorKind
from hiera_mcp.model.evaluation import Interval, Status
from hiera_mcp.model.profile import Profile
from hiera_mcp.model.space import Direction, Space, is_cpu

Bound = Literal["memory", "compute", "latency", "launch"]
"""What bounds the code that a round started from."""

Origin = Text
"""Random name of the database in which something was first recorded."""

Failure = Literal["invalid_space", "compile_error", "crash", "timeout", "resource_limit", "wrong_output", "suspect"]


class RoundRecord(Model):
    """One round of one run, without its sources: where it was tried, what it started from and what it reached."""

    origin: Origin
    run_id: Text
    round: int = Field(ge=1)
    task_id: Text
    operator_kind: OperatorKind
    """The kind with the greatest share of the reference's estimated time."""
    bound: Bound
    """Of the best candidate before the round, from its profile; where there is none, of the task's floor."""
    device: Text
    """`cpu`, or the GPU's name."""
    space: Space
    direction: Direction | None = None
    room: float | None = Field(default=None, ge=0)
    """Natural logarithm of what the round started from (time per call) over the task's floor: the most that could be gained.
    Null where nothing was timed."""
    candidates: int = Field(ge=1)
    """Those with a verdict."""
    failures: dict[Failure, int] = Field(default_factory=dict[Failure, int])
    """Verdicts other than `passed`, with how many there are of each."""
    best: Interval | None = None
    """Speed-up over eager PyTorch of the round's best candidate, by the lower bound; null: none passed."""
    before: Interval | None = None
    """The same of the best candidate of all rounds before; null: there is none, and the round started from eager PyTorch."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        failed = sum(self.failures.values())
        if any(n < 1 for n in self.failures.values()) or failed > self.candidates:
            raise ValueError("failures are counts from 1, together no more than candidates")
        if (self.best is not None) != (failed < self.candidates):
            raise ValueError("there is a best candidate exactly when some candidate passed")
        if not all(isfinite(i.high) and i.low >= 0 for i in (self.best, self.before) if i):
            raise ValueError("speed-ups are finite and not negative")
        if is_cpu_space(self.space) != (self.device == "cpu"):
            raise ValueError(f"space {self.space} does not exist on {self.device}")
        return self

    @property
    def key(self) -> tuple[Origin, str, int]:
        """What it is the record of."""
        return self.origin, self.run_id, self.round

    @property
    def passed(self) -> int:
        return self.candidates - sum(self.failures.values())


class Proof(Model):
    """What an evaluation that a lesson rests on showed, as it stood when the lesson was recorded."""

    candidate_id: Text
    evaluation_id: Text
    task: Text
    space: Space
    direction: Direction | None
    status: Status
    reason: str
    device: str | None
    speedup: Interval | None = None
    """Over eager PyTorch; only when passed."""


class Lesson(Model):
    """What a run taught, with what proves it. Never changed once recorded."""

    id: Text
    title: Text
    text: Text
    candidate_ids: tuple[Text, ...] = Field(min_length=1)
    direction: Direction | None
    space: Space | None
    at: Text
    origin: Origin
    proof: tuple[Proof, ...] = ()
    """One per candidate."""


class Memory(Model):
    """What moves between hosts: the content of a file that `hiera-mcp kb export` writes."""

    format: Literal["hiera-memory"] = "hiera-memory"
    version: Literal[1] = 1
    rounds: tuple[RoundRecord, ...] = ()
    lessons: tuple[Lesson, ...] = ()


class Surplus(Model):
    """How much more some rounds gained (natural logarithm) than was to be expected there."""

    total: float
    squares: float
    """Sum of the squares."""


class Cell(Model):
    """All rounds of one kind, counted together."""

    operator_kind: OperatorKind
    bound: Bound
    device: Text
    space: Space
    direction: Direction | None
    first: bool
    """Whether they started from eager PyTorch and not from a candidate."""
    rounds: int
    won: int
    """Rounds that gave something faster than what was there before."""
    failed: int
    """Rounds in which no candidate passed."""
    room: float
    """Sum of the natural logarithms of what they started from over the floor."""
    over_task: Surplus
    """Beyond what rounds of the same task gained of their room: what tells of the space."""
    over_space: Surplus
    """Beyond what rounds of the same task and space did: what tells of the direction."""


def is_cpu_space(space: Space) -> bool:
    """Whether a space belongs to the `cpu` target."""
    return space in (Space.CPP, Space.CPP_LIBRARIES, Space.CPP_LIBRARIES_PYTORCH)


def dominant_kind(features: Features) -> OperatorKind:
    """The kind of operator with the greatest share of the reference's estimated time; `other` without operators."""
    kinds: tuple[OperatorKind, ...] = get_args(OperatorKind)
    shares: Mapping[OperatorKind, float] = {
        kind: sum(op.share for op in features.operators if op.kind == kind) for kind in kinds
    }
    best = max(kinds, key=lambda kind: shares[kind])
    return best if shares[best] > 0 else "other"


def floor_as_bound(bound: str) -> Bound:
    """What bounds the floor (`memory` or `math`), in the words of a profile."""
    return "compute" if bound == "math" else "memory"


def bound_of(profile: Profile | None, floor: Floor) -> Bound:
    """What bounds the code at hand: from its profile, else, as far as anybody knows, what bounds the task's floor."""
    if profile is not None and profile.bottleneck != "unknown":
        return profile.bottleneck
    return floor_as_bound(floor.bound)


def device_key(target: str, name: str | None) -> str:
    """Under which name results on a device are counted: processors are one device, GPUs each its own."""
    return "cpu" if is_cpu(target) else name or "unknown GPU"


def newest(records: Iterable[RoundRecord]) -> tuple[RoundRecord, ...]:
    """One record per key, in the order of the keys: of several states of one round the one with the most verdicts.

    A run that goes on only adds verdicts. Among as many, the text decides, so that the order of merging does not matter.
    """
    kept: dict[tuple[Origin, str, int], RoundRecord] = {}
    for record in records:
        known = kept.get(record.key)
        kept[record.key] = record if known is None else max(known, record, key=_later)
    return tuple(kept[key] for key in sorted(kept))


def _later(record: RoundRecord) -> tuple[int, str]:
    return record.candidates, record.model_dump_json()
