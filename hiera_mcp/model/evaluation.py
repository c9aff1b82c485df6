"""What came out of building, verifying and timing one candidate. One status, and only what that status allows."""

from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from hiera_mcp.model.base import Model, Text


class Status(StrEnum):
    """How an evaluation ended. Only `passed` carries a time."""

    INVALID_SPACE = "invalid_space"
    COMPILE_ERROR = "compile_error"
    CRASH = "crash"
    TIMEOUT = "timeout"
    RESOURCE_LIMIT = "resource_limit"
    WRONG_OUTPUT = "wrong_output"
    SUSPECT = "suspect"
    PASSED = "passed"


class Diagnostic(Model):
    """One message of a compiler."""

    severity: Literal["error", "warning", "note"]
    file: str
    """File name as the candidate knows it; never a path of the host."""
    line: int | None
    text: Text


class KernelResources(Model):
    """What ptxas says of one kernel."""

    kernel: Text
    registers: int | None = None
    """Per thread."""
    shared_bytes: int | None = None
    """Static shared memory per block."""
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    stack_bytes: int | None = None


class Build(Model):
    """The compile step of one candidate, all cases together."""

    ok: bool
    command: Text
    """The command line of the first case, with folder names of the sandbox."""
    seconds: float
    cached: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()
    log: str = ""
    """The compiler's output, cut in the middle when long."""
    kernels: tuple[KernelResources, ...] = ()


class SpaceFinding(Model):
    """Something that lies outside the chosen space."""

    evidence: Literal["include", "needed_library", "symbol", "source", "file"]
    what: Text
    """The header, library, symbol or file name."""
    smallest_space: str | None
    """The smallest space that would allow it; null when none does."""


class Margin(Model):
    """How far an output was from its limit, and whether the check could have been fooled."""

    output: Text
    """Which output, of which case."""
    trial: Text
    """Which inputs: distribution and number of the draw."""
    error: float
    """Greatest error of the candidate as a fraction of the element's limit; above 1 fails."""
    reference_error: float | None
    """The same figure for the reference's own result in the contract's precision; null without an oracle."""
    trivial: dict[str, float] = Field(default_factory=dict)
    """The same figure for outputs that did no work: zeros, constant, constant_along (one value along a dimension),
    input_echo, other_inputs; the greatest of all trials. Told from the right output from 2 on."""


class Verification(Model):
    """Checks on the outputs."""

    trials: int
    """Calls whose outputs were compared in full."""
    sampled_calls: int = 0
    """Timed calls whose outputs were compared at random places."""
    worst: Margin | None
    """The comparison that came closest to its limit, or broke it."""
    oracle: Literal["float64", "sampled", "reference"]
    """What outputs were compared with. sampled: part of each batch with float64, all of it with the reference itself."""
    oracle_share: float = 1.0
    """Fraction of the elements that were compared with float64."""
    deterministic: bool | None = None
    """Whether two calls on the same inputs gave the same bits."""
    findings: tuple[str, ...] = ()
    """What was seen that is not right: guard zones, mutated inputs, unwritten elements, …"""
    notes: tuple[str, ...] = ()
    """What limited the checks: trials that were dropped and why, an oracle that does not exist."""


class Interval(Model):
    """A median with its 95 % confidence interval."""

    median: float
    low: float
    high: float

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low <= self.median <= self.high:
            raise ValueError("an interval has low <= median <= high")
        return self


class Clocks(Model):
    """Three clocks that must agree, in seconds per call."""

    claimed: float
    """What the runner reported for batches (events on CUDA, a monotonic clock on cpu)."""
    outside: float
    """Wall-clock slope over two batch sizes, taken by the judge outside the runner."""
    floor: float
    """What moving the contract's compulsory bytes takes on the device that ran, at its measured copy bandwidth."""


class ShortCall(Model):
    """A call that takes less than 10 us on a GPU: its time on the device apart from what launching it costs. Warm cache;
    seconds per call."""

    method: Literal["graph_replay", "batches"]
    """graph_replay: many calls in one captured CUDA graph; batches: the call cannot be captured (`unmeasured` says why)."""
    device: float | None
    """The work itself and the gap between two nodes of a graph, as replays show it; null where it cannot be captured."""
    launched: float
    """Calls issued one after another, so with their launches."""
    launch: float | None
    """What launching adds: `launched` − `device`, at least 0."""


class Timing(Model):
    """Interleaved timing of candidate and reference. Times in seconds per call."""

    candidate: Interval
    reference: Interval
    """Eager PyTorch."""
    speedup: Interval
    """Reference time / candidate time, from the paired rounds."""
    pairs: int
    """Number of ABBA rounds."""
    cache: Literal["cold", "warm", "partly_cold"]
    """State of the last-level cache before each timed call."""
    warm_candidate: float | None = None
    """Median in seconds with a warm cache."""
    prepare_seconds: float | None = None
    """Time of hiera_prepare, which is not part of a call."""
    clocks: Clocks
    protocol: Literal["hiera", "kernelbench"] = "hiera"
    clock_overhead: float = 0.0
    """What the clock of a single call reads around nothing, by the judge's own measurement. It is taken off `candidate` and
    `reference` already."""
    short_call: ShortCall | None = None
    """Only of calls under 10 us on a GPU."""
    device_clocks: dict[str, float] = Field(default_factory=dict)
    """NAME_before, NAME_after, NAME_lowest and NAME_highest over the rounds: sm_mhz, memory_mhz, temperature_c and power_w of a
    GPU; processor_mhz and load (of the last minute) of a processor."""
    clock_limits: tuple[str, ...] = ()
    """What held the GPU's clocks back at any reading: power cap, thermal slowdown, …"""
    unmeasured: tuple[str, ...] = ()
    """Measurements that belong to the protocol and could not be made, each with its reason."""


class Device(Model):
    """Where something ran. Stored with every measurement."""

    name: Text
    """For example `NVIDIA H200` or the processor's name."""
    target: Text
    driver: str | None = None
    cuda: str | None = None
    torch: str | None = None
    compiler: str | None = None
    isolation: Text
    """The isolation backend, for example `bubblewrap`."""
    host: str = ""
    """Kernel and number of processors."""


class Evaluation(Model):
    """The result for one candidate."""

    status: Status
    reason: Text
    """One line: why this status, with what was seen."""
    build: Build | None = None
    space_findings: tuple[SpaceFinding, ...] = ()
    verification: Verification | None = None
    timing: Timing | None = None
    device: Device | None = None
    seconds: float = 0.0
    """How long the evaluation itself took."""
    log: str = ""
    """What the candidate printed, cut in the middle when long."""

    @model_validator(mode="after")
    def _only_what_the_status_allows(self) -> Self:
        if self.timing is not None and self.status is not Status.PASSED:
            raise ValueError(f"a timing exists only for status passed, not {self.status}")
        if self.status is Status.PASSED and self.verification is None:
            raise ValueError("status passed needs a verification")
        if self.verification is not None and self.status in (Status.INVALID_SPACE, Status.COMPILE_ERROR):
            raise ValueError(f"status {self.status} cannot carry a verification: nothing ran")
        if self.space_findings and self.status is not Status.INVALID_SPACE:
            raise ValueError("space findings exist only for status invalid_space")
        return self


class NotRun(Model):
    """The candidate was built and space-checked, but there is no device to run it on. Not a verdict."""

    reason: Text
    build: Build
    device: Device | None = None


class Comparison(Model):
    """Is one candidate faster than another?"""

    verdict: Literal["faster", "slower", "no_difference"]
    ratio: Interval
    """Time of the other / time of this one; above 1 means that this one is faster."""
    basis: Text
    """How the two were compared."""
