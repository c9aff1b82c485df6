"""What the client keeps of a server's answers: the fields that it shows, whatever else an answer holds."""

from pydantic import BaseModel, ConfigDict

from hiera_mcp.model.evaluation import Comparison, Diagnostic, Interval, SpaceFinding


class View(BaseModel):
    """Part of an answer. Frozen; fields that a newer server adds are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)


class FloorView(View):
    """The contract's speed of light."""

    seconds: float
    arithmetic: str = ""
    elsewhere: str = ""
    """On other devices."""


class FeaturesView(View):
    """Workload features, a line each."""

    operators: tuple[str, ...] = ()
    chains: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


class ContractView(View):
    """The contract that a run optimises."""

    contract_id: str
    task: str
    target: str
    precision: str
    spaces: tuple[str, ...]
    source_file: str
    """The name under which a candidate's one source file is submitted."""
    floor: FloorView
    features: FeaturesView = FeaturesView()
    cases: tuple[str, ...] = ()
    tolerance: str = ""
    degeneracy: str = ""
    files: dict[str, str] = {}
    """Name → address."""
    notes: tuple[str, ...] = ()


class CandidateRow(View):
    """One candidate and what became of it."""

    candidate_id: str
    name: str
    round: int
    space: str
    direction: str | None = None
    status: str
    reason: str
    time_s: Interval | None = None
    reference_s: Interval | None = None
    speedup: Interval | None = None
    margin: float | None = None
    floor_ratio: float | None = None
    versus_parent: Comparison | None = None
    is_best: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()
    space_findings: tuple[SpaceFinding, ...] = ()
    parent_id: str | None = None
    source_uri: str = ""
    log_uri: str = ""


class DecisionRow(View):
    """One recorded decision."""

    decision_id: str
    round: int
    kind: str
    choice: str
    decided_by: str
    reason: str
    recommended: str = ""
    prediction: str = ""


class OpenJob(View):
    """Work of a run that has not ended."""

    job_id: str


class RunView(View):
    """Where a run stands."""

    run_id: str
    contract_id: str
    task: str
    target: str
    state: str
    round: int
    space: str | None = None
    direction: str | None = None
    best: CandidateRow | None = None
    candidates: tuple[CandidateRow, ...] = ()
    decisions: tuple[DecisionRow, ...] = ()
    plan: tuple[str, ...] = ()
    """What the planner does without."""
    open_jobs: tuple[OpenJob, ...] = ()
    trajectory_uri: str
    database: str


class RunReport(View):
    """A run from contract to export."""

    contract: ContractView
    run: RunView
    export_dir: str
    """Folder on the server's host with the winner and the contract; empty when nothing could be exported."""
    exported: tuple[str, ...] = ()
    seconds: float
    """Wall-clock time of the whole run."""

    @property
    def best(self) -> CandidateRow | None:
        """The fastest candidate that passed."""
        return self.run.best
