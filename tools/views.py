"""What tools return about contracts, runs, candidates and decisions."""

from typing import Literal

from hiera_mcp.model.base import Model
from hiera_mcp.model.contract import Floor, Precision, Tolerance
from hiera_mcp.model.evaluation import Comparison, Diagnostic, Interval, SpaceFinding, Status
from hiera_mcp.model.run import Budget, Job, JobState
from hiera_mcp.model.space import Direction, Space


class OperatorLine(Model):
    """One operator of the reference."""

    name: str
    kind: str
    count: int
    flops: float
    bytes: float
    share: float
    """Estimated share of the reference's time, 0 to 1."""


class FeaturesView(Model):
    """Workload features of the first case."""

    flops: float
    compulsory_bytes: float
    """What a fully fused kernel must move."""
    unfused_bytes: float
    """What eager execution moves."""
    arithmetic_intensity: float
    launches: int
    """Kernels that eager execution launches."""
    tensor_core_legal: bool
    tensor_core_reason: str
    operators: tuple[OperatorLine, ...]
    """The most expensive first."""


class ContractView(Model):
    """What an agent needs to write a candidate."""

    contract_id: str
    task: str
    target: str
    precision: Precision
    spaces: tuple[Space, ...]
    source_file: str
    """The file that you write."""
    interface: str
    """Structs and prototypes of contract.h that you implement."""
    parameters: tuple[str, ...]
    """One line each, in the order of the struct."""
    cases: tuple[str, ...]
    """One line each: inputs → outputs."""
    features: FeaturesView
    floor: Floor
    tolerance: Tolerance
    degeneracy: str
    """Whether a trivial output would pass."""
    notes: tuple[str, ...]
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
    trajectory_uri: str
    database: str
    """Path of the SQLite file."""
    next_step: str
