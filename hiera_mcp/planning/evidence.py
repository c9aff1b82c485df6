"""What the planner knows at one moment: frozen, built from values, every reading null with a reason where absent."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from pydantic import Field

from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.contract import Contract, Features, Floor, Precision
from hiera_mcp.model.evaluation import Comparison, Evaluation, Interval, KernelResources, NotRun, Status, Timing
from hiera_mcp.model.hardware import Gpu
from hiera_mcp.model.memory import Cell
from hiera_mcp.model.profile import Profile
from hiera_mcp.model.run import Candidate
from hiera_mcp.model.space import Direction, Space, Target
from hiera_mcp.model.switches import NO_MEMORY, Switches


class Outcome(Model):
    """What became of one candidate, as far as the planner is concerned."""

    candidate_id: Text
    name: Text
    round: int
    space: Space
    direction: Direction | None
    parent_id: str | None = None
    status: Status | Literal["not_run", "pending"]
    reason: str = ""
    """The evaluation's one line, or the first compiler error."""
    timing: Timing | None = None
    floor_ratio: float | None = None
    kernels: tuple[KernelResources, ...] = ()
    instruction_mix: dict[str, int] | None = None
    idea: str = ""
    paired: dict[str, Comparison] = Field(default_factory=dict)
    """Comparisons with other candidates that were timed in one session with this one, by the other's id."""
    sources: dict[str, str] = Field(default_factory=dict)
    """File name → text."""

    @property
    def passed(self) -> bool:
        return self.status is Status.PASSED

    @property
    def speedup(self) -> Interval | None:
        return None if self.timing is None else self.timing.speedup

    @property
    def judged(self) -> bool:
        """Whether there is a verdict. A candidate that is pending or could not run says nothing about its direction."""
        return isinstance(self.status, Status)


class Evidence(Model):
    """Everything that a score, a gate or a recommendation may read. Never read from anywhere else."""

    target: Target
    precision: Precision
    features: Features
    floor: Floor
    parameters: int
    """Number of parameters and buffers of the contract."""
    spaces: tuple[Space, Space, Space]
    round: int = 1
    space: Space | None = None
    """The space decided last; null before the first decision."""
    direction: Direction | None = None
    outcomes: tuple[Outcome, ...] = ()
    used_entries: tuple[str, ...] = ()
    """Slugs of knowledge entries on which earlier strategies of this run rested."""
    profile: Profile | None = None
    """Profile of the best candidate."""
    profile_reason: str = ""
    """Why there is none."""
    libraries: tuple[str, ...] | None = None
    """Maths libraries of the target that this host has; null when nobody looked."""
    libraries_reason: str = ""
    gpu: Gpu | None = None
    gpu_reason: str = ""
    degenerate: bool = False
    notes: tuple[str, ...] = Field(default=())
    switches: Switches = Switches()
    """What the run does without."""
    memory: tuple[Cell, ...] = ()
    """What rounds of other runs brought, here and on hosts whose memory was imported; empty where memory is off."""
    memory_reason: str = ""
    """Why there is none."""


def outcome_of(
    candidate: Candidate,
    result: Evaluation | NotRun | None,
    contract: Contract,
    paired: Mapping[str, Comparison] = MappingProxyType({}),
) -> Outcome:
    """The planner's view of a stored candidate and its result; None means that it is still being evaluated.

    Args:
        paired: its comparisons in one session, by the other candidate's id.
    """
    timing = result.timing if isinstance(result, Evaluation) else None
    build = result.build if result is not None else None
    return Outcome(
        candidate_id=candidate.id,
        name=candidate.name,
        round=candidate.round,
        space=candidate.space,
        direction=candidate.direction,
        parent_id=candidate.parent_id,
        status=_status(result),
        reason="" if result is None else _first_cause(result),
        timing=timing,
        floor_ratio=_floor_ratio(timing, contract.floor),
        kernels=() if build is None else build.kernels,
        idea=candidate.idea,
        paired=dict(paired),
        sources=candidate.sources,
    )


def gather(
    contract: Contract,
    outcomes: Sequence[Outcome] = (),
    *,
    round: int = 1,
    space: Space | None = None,
    direction: Direction | None = None,
    used_entries: Sequence[str] = (),
    profile: Profile | None = None,
    profile_reason: str = "",
    libraries: Sequence[str] | None = None,
    gpu: Gpu | None = None,
    switches: Switches | None = None,
    memory: Sequence[Cell] = (),
) -> Evidence:
    """Evidence for the next decision of a run. Where the switches say so, memory is left out."""
    switches = switches or Switches()
    remembered = tuple(memory) if switches.memory else ()
    return Evidence(
        target=contract.target,
        precision=contract.precision,
        features=contract.features,
        floor=contract.floor,
        parameters=len(contract.parameters),
        spaces=contract.spaces,
        round=round,
        space=space,
        direction=direction,
        outcomes=tuple(outcomes),
        used_entries=tuple(used_entries),
        profile=profile,
        profile_reason=profile_reason or ("" if profile else _why_no_profile(outcomes)),
        libraries=None if libraries is None else tuple(libraries),
        libraries_reason="nobody looked for libraries on this host" if libraries is None else "",
        gpu=gpu,
        gpu_reason="" if gpu else "no hardware table applies",
        degenerate=contract.degeneracy.degenerate,
        notes=contract.notes,
        switches=switches,
        memory=remembered,
        memory_reason="" if remembered else _why_no_memory(switches),
    )


def _floor_ratio(timing: Timing | None, floor: Floor) -> float | None:
    if timing is None or floor.seconds <= 0:
        return None
    return timing.candidate.median / floor.seconds


def _status(result: Evaluation | NotRun | None) -> Status | Literal["not_run", "pending"]:
    if result is None:
        return "pending"
    return "not_run" if isinstance(result, NotRun) else result.status


def _first_cause(result: Evaluation | NotRun) -> str:
    """The first compiler error says more than `does not compile`."""
    if isinstance(result, Evaluation) and result.status is Status.COMPILE_ERROR and result.build is not None:
        errors = [d.text for d in result.build.diagnostics if d.severity == "error"]
        return errors[0] if errors else result.reason
    return result.reason


def _why_no_memory(switches: Switches) -> str:
    return "no other run has a verdict yet" if switches.memory else f"this run was started with {NO_MEMORY}"


def _why_no_profile(outcomes: Sequence[Outcome]) -> str:
    if not any(o.passed for o in outcomes):
        return "no candidate has passed yet"
    return "the best candidate has not been profiled"
