"""What is handed to an executor and what comes back: plain data, so that the executor may sit on another host."""

from typing import Literal

from pydantic import Field

from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.contract import Contract, DType, OperatorKind, Precision, Scalar, TensorSpec
from hiera_mcp.model.evaluation import Build, Device, SpaceFinding, Timing, Verification
from hiera_mcp.model.space import Space, Target


class TraceRequest(Model):
    """Trace a reference: shapes, parameters, operators. No data is drawn for it."""

    source: Text
    name: Text
    precision: Precision = "float32"
    timeout_s: float = 120.0
    probe_bytes: int = 1 << 30
    """Draw real data and probe for degeneracy only when inputs, parameters and outputs together stay below this."""


class TracedParameter(Model):
    """A parameter or buffer as the tracer saw it."""

    path: Text
    shape: tuple[int, ...]
    dtype: DType
    buffer: bool
    module_path: str
    module_type: Text
    module_repr: str
    """`repr` of the owning module, cut to a line."""


class TracedOperator(Model):
    """One call of one operator."""

    name: Text
    kind: OperatorKind = "other"
    flops: float
    bytes_read: int
    bytes_written: int
    is_view: bool


class Trace(Model):
    """What the tracer learnt about a reference."""

    inputs: tuple[TensorSpec, ...]
    scalars: tuple[Scalar, ...]
    forward_order: tuple[str, ...]
    outputs: tuple[TensorSpec, ...]
    parameters: tuple[TracedParameter, ...]
    operators: tuple[TracedOperator, ...]
    trivial_outputs: dict[str, bool] | None
    """zeros, constant, input_echo, other_inputs → would it pass at rtol = atol = 1e-4? Null when not probed."""
    probe_reason: str = ""
    """Why it was not probed; else what else the runs showed. Not part of `notes`, which enter the contract's id."""
    touched_bytes: dict[str, int] | None = None
    """`inputs.NAME` or `state.PATH` → bytes of it that forward() reads, each byte once. A missing name: not known
    to be read; null: nothing is known, assume all."""
    copy_bandwidth: float
    """Measured on this host's processor, bytes per second (read + written)."""
    peak_flops: float
    """Measured float32 matmul rate of this host's processor, FLOP per second."""
    notes: tuple[str, ...] = ()


class Limits(Model):
    """Limits on one evaluation."""

    compile_s: float = 180.0
    load_s: float = 60.0
    """Loading a candidate, hiera_prepare included; 300 s when a ModelNew builds an extension itself."""
    call_s: float = 20.0
    """The longest that one call of the candidate may take."""
    rounds_s: float = 2.0
    """Time for the timing rounds, as long as the least number of rounds fits into it."""
    total_s: float = 600.0
    memory_bytes: int = 16 << 30
    disk_bytes: int = 512 << 20
    processes: int = 128
    output_bytes: int = 1 << 20


class CheckRequest(Model):
    """Compile a candidate for all cases and check its space."""

    contract: Contract
    files: dict[str, str]
    """The contract's fixed files by name (contract.h, cpp_source.cpp, …), as `contracts.render_files` made them."""
    space: Space
    sources: dict[str, str]
    """The candidate's files by name."""
    limits: Limits = Field(default_factory=Limits)


class CheckReport(Model):
    """What compiling and looking showed."""

    build: Build
    space_findings: tuple[SpaceFinding, ...]
    instruction_mix: dict[str, int]
    device: Device


class EvaluateRequest(CheckRequest):
    """Compile, space-check, verify and time a candidate."""

    protocol: Literal["hiera", "kernelbench"] = "hiera"
    device: str = "auto"
    """`auto`, `cpu`, or `cuda:N`."""


class ProfileRequest(CheckRequest):
    """Profile a candidate that passed; `timing` is what its evaluation measured."""

    timing: Timing | None
    device: str = "auto"


class JudgeReport(Model):
    """What the judge says about one candidate; the launcher turns it into an Evaluation."""

    outcome: Literal["passed", "wrong_output", "suspect", "candidate_error", "runner_lost", "timeout"]
    """candidate_error: a call returned an error or raised; runner_lost: the runner's socket closed in mid-work;
    timeout: it did not answer within `load_s` or `call_s` and still runs."""
    stage: Literal["load", "prepare", "verify", "time"]
    reason: Text
    verification: Verification | None = None
    timing: Timing | None = None
    device_name: str = ""
    torch_version: str = ""


class TargetReport(Model):
    """What this host can do for one target."""

    target: Target
    compiles: bool
    runs: bool
    reason: str
    """Why not, and what to install; empty when both are true."""


class Probe(Model):
    """One denial that an isolation backend must give."""

    name: Text
    expected: Literal["denied", "allowed"]
    observed: Text
    ok: bool


class IsolationReport(Model):
    """The self-check of one isolation backend."""

    backend: Text
    usable: bool
    reason: str
    probes: tuple[Probe, ...] = ()
    launch_ms: float | None = None
    """Median overhead of one launch."""


class DoctorReport(Model):
    """What this host offers: isolation, compilers, libraries, GPUs."""

    isolation: tuple[IsolationReport, ...]
    chosen: str | None
    """The backend in use; null when none is usable."""
    targets: tuple[TargetReport, ...]
    gpus: tuple[str, ...]
    tools: dict[str, str]
    """Name → version, or what to install: g++, nvcc, bwrap, ncu, cuobjdump, torch, cupy."""
    advice: tuple[str, ...]
