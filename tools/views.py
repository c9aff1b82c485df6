"""What tools return about contracts, runs, candidates and decisions."""

from typing import Literal

from hiera_mcp.model.base import Model
from hiera_mcp.model.contract import Precision
from hiera_mcp.model.evaluation import Comparison, Diagnostic, Interval, SpaceFinding, Status
from hiera_mcp.model.run import Budget, Job, JobState
from hiera_mcp.model.space import Direction, Space


class FloorView(Model):
    """The least time that one call can take (speed of light)."""

    seconds: float
    bound: Literal["memory", "math"]
    arithmetic: str
    basis: str
    """Where bandwidth and peak come from."""
    elsewhere: str
    """The floors on other devices."""


class FeaturesView(Model):
    """Workload features of the first case. Lists are cut; the last line says what is left out and where it is."""

    flops: float
    compulsory_bytes: float
    """What a fully fused kernel must move."""
    unfused_bytes: float
    """What eager execution moves."""
    parameter_bytes: int
    arithmetic_intensity: float
    """flops / compulsory_bytes."""
    launches: int
    """Kernels that eager execution launches."""
    depth: int
    """Operators on the longest path."""
    tensor_core_legal: bool
    tensor_core_reason: str
    uncovered_share: float
    """Share of time in operators that no library serves, 0 to 1."""
    unused: str
    """Operators that no output depends on, which a candidate may leave out; empty: none."""
    operators: tuple[str, ...]
    """The most expensive first, with estimated share of the reference's time, FLOPs and bytes."""
    chains: tuple[str, ...]
    """Operators that can become one kernel; those that save most come first."""
    reductions: tuple[str, ...]
    reuse: tuple[str, ...]
    """Tensors that are read more than once, or used many times by a contraction."""
    libraries: tuple[str, ...]
    """Which library would serve which operators."""


class ContractView(Model):
    """What an agent needs to write a candidate. Lists are cut; the last line says what is left out and where it is."""

    contract_id: str
    task: str
    target: str
    precision: Precision
    spaces: tuple[Space, ...]
    source_file: str
    """The file that you write."""
    interface: str
    """Structs and prototypes of contract.h that you implement."""
    cases: tuple[str, ...]
    """One line each: inputs and scalars -> outputs."""
    handling: tuple[str, ...]
    """How scalars and random numbers reach the candidate."""
    parameters: tuple[str, ...]
    """What the parameters mean; `layers.*.weight ×98` stands for all that differ in numbers only. A field's name in the
    struct is its path with _ for dots; contract.h has each."""
    floor: FloorView
    features: FeaturesView
    tolerance: str
    """When an output is right."""
    degeneracy: str
    """Whether a trivial output would pass, and what follows."""
    notes: tuple[str, ...]
    """Stated rules and warnings."""
    files: dict[str, str]
    """Name → address of each contract file."""


class CandidateRow(Model):
    """One candidate and what became of it."""

    candidate_id: str
    name: str
    round: int
    space: Space
    direction: Direction | None
    status: Status | Literal["not_run", "pending"]
    """not_run and pending are no verdicts; see reason."""
    reason: str
    time_s: Interval | None = None
    """Seconds per call; only when passed."""
    reference_s: Interval | None = None
    """Eager PyTorch, measured in turn with it."""
    speedup: Interval | None = None
    margin: float | None = None
    """Greatest error / limit; above 1 is wrong."""
    floor_ratio: float | None = None
    """Time / contract floor."""
    versus_parent: Comparison | None = None
    is_best: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()
    """The first compiler errors."""
    space_findings: tuple[SpaceFinding, ...] = ()
    parent_id: str | None = None
    source_uri: str
    log_uri: str


class DecisionRow(Model):
    """One recorded decision."""

    decision_id: str
    round: int
    kind: str
    choice: str
    decided_by: Literal["agent", "server"]
    reason: str
    recommended: str
    prediction: str = ""
    """Of a strategy: what became of it."""


class OpenJob(Model):
    """Work of the run that has not ended."""

    job_id: str
    kind: str
    state: JobState
    message: str

    @classmethod
    def of(cls, job: Job) -> "OpenJob":
        return cls(job_id=job.id, kind=job.kind, state=job.state, message=job.message)


class RunView(Model):
    """Where a run stands."""

    run_id: str
    contract_id: str
    task: str
    target: str
    state: Literal["open", "finished"]
    round: int
    budget: Budget
    goal: str
    space: Space | None
    direction: Direction | None
    best: CandidateRow | None
    parents: tuple[CandidateRow, ...]
    """Candidates worth building on."""
    candidates: tuple[CandidateRow, ...]
    """The newest ones, in order of submission."""
    earlier_candidates: int = 0
    """How many are left out; the trajectory has them all."""
    decisions: tuple[DecisionRow, ...]
    """The newest ones."""
    earlier_decisions: int = 0
    """How many are left out; the trajectory has them all."""
    open_jobs: tuple[OpenJob, ...]
    plan: tuple[str, ...] = ()
    """What the planner does without."""
    trajectory_uri: str
    database: str
    """Path of the SQLite file."""
    next_step: str
