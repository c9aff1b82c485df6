"""What is handed to an executor and what comes back: plain data, so that the executor may sit on another host."""

from typing import Literal

from pydantic import Field, JsonValue

from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.contract import Contract, DType, OperatorKind, Precision, Scalar, TensorSpec
from hiera_mcp.model.evaluation import Build, Device, Interval, SpaceFinding, Timing, Verification
from hiera_mcp.model.space import Space, Target


class HostRates(Model):
    """What this host's processor reached, with all of its threads. A floor rests on it, so it is the best that was seen."""

    bandwidth: tuple[tuple[int, float], ...] = Field(min_length=1)
    """Bytes of the working set → bytes per second, read and written; ascending."""
    flops: dict[str, float]
    """fp32, fp64 → FLOP per second of a matrix product."""

    def bandwidth_for(self, nbytes: float) -> float:
        """On a working set of this size: that of the next smaller one that was measured (caches make it faster)."""
        return [rate for size, rate in self.bandwidth if size <= max(nbytes, self.bandwidth[0][0])][-1]


class TraceRequest(Model):
    """Trace a reference: shapes, parameters, operators. No data is drawn for it."""

    source: Text
    name: Text
    precision: Precision = "float32"
    timeout_s: float = 120.0
    probe_bytes: int = 1 << 30
    """The probe for degeneracy draws real data on sizes that keep parameters and the largest operator below this."""
    probe_s: float = 4.0
    """Processor time after which the probe begins no further trial."""
    rates: HostRates | None = None
    """Of this host, for the probe's estimate of what its runs cost; null: a guess."""


class TracedModule(Model):
    """One torch module of the reference."""

    path: str
    """Empty for the model itself."""
    type: Text


class TracedArgument(Model):
    """One tensor argument of an operator, as the operator sees it (after views)."""

    name: Text
    """As the operator's schema calls it: `input`, `weight`, `mat2`, `bias`, …"""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements."""
    dtype: Text


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
    torch_type: str = ""
    """The class of torch.nn whose forward() the owning module runs: itself or a base of it. Empty: the task's own forward()."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Plain attributes of the owning module by name (in_channels, groups, stride, eps, …): numbers, booleans, strings, and
    lists of them."""
    strides: tuple[int, ...] = ()
    """Of the reference's own tensor, in elements; candidates get it dense. Empty: dense there too."""
    aliases: tuple[str, ...] = ()
    """Further paths of the same tensor (tied weights)."""
    updated: bool = False
    """forward() writes to it (running statistics, counters, hidden states)."""


class TracedOperator(Model):
    """One kind of call: an operator on tensors of certain shapes. Figures are those of one call."""

    name: Text
    kind: OperatorKind = "other"
    flops: float
    bytes_read: int
    bytes_written: int
    is_view: bool
    count: int = 1
    """How many calls of it there are."""
    arguments: tuple[TracedArgument, ...] = ()
    """Its tensors, in the order of `TracedCall.reads`."""
    result: tuple[int, ...] = ()
    """Shape of its first result."""
    reduced: int = 1
    """Elements that go into one element of the result, for reductions, normalisations, scans and contractions."""
    reduced_dims: tuple[int, ...] = ()
    """Dimensions of the first argument that a reduction, normalisation or scan runs over."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Its arguments that are no tensors, by the schema's names (stride, groups, eps, training, dim, …): numbers, booleans,
    strings, and lists of them."""


class TracedCall(Model):
    """One call that launches work (views launch none, and are looked through)."""

    operator: int
    """Index into `Trace.operators`."""
    reads: tuple[int, ...]
    """Indices into `Trace.values`, one per tensor argument."""
    writes: tuple[int, ...]
    """Values that the call makes. An in-place write makes a new value of the same memory."""
    module: int = 0
    """Index into `Trace.modules`: the innermost torch module that runs."""


class TracedValue(Model):
    """What a piece of memory holds between two writes."""

    nbytes: int
    owner: str = ""
    """`inputs.NAME`, `state.PATH` or `outputs.NAME`; empty for a result in between."""


class TracedCase(Model):
    """The interface on one set of shapes."""

    name: Text
    inputs: tuple[TensorSpec, ...]
    scalars: tuple[Scalar, ...]
    forward_order: tuple[str, ...]
    draws: tuple[str, ...] = ()
    """Names of the inputs that stand for random numbers which forward() draws, in the order in which it draws them. They
    are not in `forward_order`."""
    outputs: tuple[TensorSpec, ...]


class Trace(Model):
    """What the tracer learnt about a reference."""

    case: Text = "default"
    """Name of the first case, which all here is about."""
    inputs: tuple[TensorSpec, ...]
    scalars: tuple[Scalar, ...]
    forward_order: tuple[str, ...]
    outputs: tuple[TensorSpec, ...]
    draws: tuple[str, ...] = ()
    """Names of the inputs that stand for random numbers which forward() draws, in the order in which it draws them. They
    are not in `forward_order`."""
    parameters: tuple[TracedParameter, ...]
    operators: tuple[TracedOperator, ...]
    further_cases: tuple[TracedCase, ...] = ()
    """The other cases of the reference's get_cases()."""
    calls: tuple[TracedCall, ...] = ()
    """In the order of execution."""
    values: tuple[TracedValue, ...] = ()
    modules: tuple[TracedModule, ...] = ()
    """The model itself comes first."""
    trivial_outputs: dict[str, bool] | None
    """zeros, constant (for all elements, or along a dimension), input_echo, other_inputs → would it pass on the task's own
    draw? Null when not probed."""
    probe_reason: str = ""
    """Why it was not probed; else what limited it. Not part of `notes`, which enter the contract's id."""
    probe_sizes: str = ""
    """The shapes it was probed on, where they are smaller than the task's: `x [4096, 8192] → [4, 8192]`."""
    probe_remedy: str = ""
    """The trials in which the passing ones were told from the right answer."""
    probe_unverifiable: bool = False
    """All trials of verification were tried, and some trivial answer passed in each."""
    touched_bytes: dict[str, int] | None = None
    """`inputs.NAME` or `state.PATH` → bytes of it that forward() reads, each byte once. A missing name: not known
    to be read; null: nothing is known, assume all."""
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
    notes: tuple[str, ...] = ()
    """What the binary says about speed: occupancy at usual block sizes, spills, narrow loads, idle Tensor Cores."""
    device: Device


class EvaluateRequest(CheckRequest):
    """Compile, space-check, verify and time a candidate."""

    protocol: Literal["hiera", "kernelbench"] = "hiera"
    device: str = "auto"
    """`auto`, `cpu`, or `cuda:N`."""


class Rival(Model):
    """What another candidate for the same contract consists of."""

    space: Space
    sources: dict[str, str]


class CompareRequest(CheckRequest):
    """Time a candidate that passed against another one that passed, in one session."""

    other: Rival
    device: str = "auto"
    """`auto`, `cpu`, or `cuda:N`."""
    compare_s: float = 4.0
    """Time for the rounds, as long as the least number of rounds fits into it; fewer when the difference is clear."""


class PairReport(Model):
    """What the judge says about two candidates that it timed against each other."""

    reason: str = ""
    """Why there is no comparison; empty when there is one."""
    ratio: Interval | None = None
    """Time of the other / time of this one: median of the rounds, with the interval of the last look."""
    rounds: int = 0
    this_s: float | None = None
    """Median seconds of a cold call."""
    other_s: float | None = None
    ran_at: str = ""
    """Clock and temperature of a GPU, in words."""


class ProfileRequest(CheckRequest):
    """Profile a candidate that passed; `timing` is what its evaluation measured."""

    timing: Timing | None
    device: str = "auto"


class HostCounts(Model):
    """What one call cost the processor, by the runner's claim. Counts are over all threads."""

    seconds: float = Field(ge=0)
    """Wall-clock time of the call."""
    processors: int = Field(gt=0)
    """That the candidate may use."""
    user_seconds: float
    system_seconds: float
    page_faults: float
    waits: float
    """How often a thread gave its processor up: it waited for another one, or for a lock."""
    preemptions: float
    """How often one was taken from it."""
    cycles: float | None = None
    instructions: float | None = None
    branches: float | None = None
    branch_misses: float | None = None
    l1_read_misses: float | None = None
    llc_read_misses: float | None = None
    dtlb_read_misses: float | None = None
    refused: str = ""
    """Why there are no counters; empty when there are some."""


class OtherPlace(Model):
    """A function that is none of the candidate's own library."""

    library: str = Field(max_length=120)
    """Empty: memory that belongs to no file."""
    function: str = Field(max_length=120)
    """Empty: not known."""
    samples: int = Field(ge=0)


class HostSamples(Model):
    """Where the threads were while the candidate was called again and again, by the runner's claim."""

    calls: int = Field(ge=0)
    full: int = Field(ge=0)
    """Threads or processors that had no room for more samples: the end of the longest call is not covered."""
    own: tuple[tuple[int, int], ...]
    """Offset in the candidate's library → samples."""
    others: tuple[OtherPlace, ...]
    refused: str = ""
    """Why there are none; empty when they could be taken."""
    clock: str = ""
    """Why threads were stopped (ptrace) instead of sampled by the kernel's clock; empty when they were not."""


class JudgeReport(Model):
    """What the judge says about one candidate; the launcher turns it into an Evaluation."""

    outcome: Literal["passed", "wrong_output", "suspect", "candidate_error", "runner_lost", "timeout"]
    """candidate_error: a call returned an error or raised; runner_lost: the runner's socket closed in mid-work;
    timeout: it did not answer within `load_s` or `call_s` and still runs."""
    stage: Literal["load", "prepare", "verify", "time"]
    reason: Text
    verification: Verification | None = None
    timing: Timing | None = None
    host_counts: dict[str, JsonValue] | None = None
    """HostCounts of a call that was made for a profile on `cpu`, as the runner claims them."""
    host_samples: dict[str, JsonValue] | None = None
    """HostSamples of further calls; as the runner claims them."""
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
    """Name → version, or what to install: g++, nvcc, bwrap, ncu, compute-sanitizer, cuobjdump, torch, cupy."""
    advice: tuple[str, ...]
