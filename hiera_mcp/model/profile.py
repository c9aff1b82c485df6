"""Evidence about what bounds a candidate. A missing metric is null with a reason, never zero."""

from typing import Literal

from pydantic import Field

from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.evaluation import Device, KernelResources
from hiera_mcp.model.space import Direction

Bottleneck = Literal["memory", "compute", "latency", "launch", "unknown"]

CounterStatus = Literal[
    "read", "not_asked", "cpu", "no_kernels", "no_permission", "missing", "mismatch", "unsupported", "timeout",
    "candidate_failed", "failed",
]  # fmt: skip
"""How reading hardware counters ended. no_kernels: the call launched none; missing: no ncu here; mismatch: ncu and driver,
or ncu and the reader of its reports, do not fit; unsupported: the container hides the counters."""


class Metric(Model):
    """One value with its origin."""

    name: Text
    value: float | None
    unit: str
    origin: Literal["static", "derived", "counter"]
    """static: from the binary; derived: from the measured time; counter: a hardware counter."""
    reason: str = ""
    """Why the value is null, when it is."""


class Occupancy(Model):
    """Theoretical occupancy of one kernel at one block size."""

    kernel: Text
    block_threads: int
    percent: float
    limiter: Literal["registers", "shared_memory", "threads", "blocks", "none"]


class Stall(Model):
    """Why the warps of a launch waited."""

    reason: Text
    """As Nsight Compute calls it: long_scoreboard, barrier, wait, …"""
    cycles: float
    """Of the cycles between two instructions of a warp, how many it spent so, on average."""
    share: float
    """The same as a fraction of all of them."""


class SourceLine(Model):
    """One line of a candidate's source, and what it cost."""

    file: Text
    """One of the candidate's; or on cpu, with line 0, the library that the time was spent in."""
    line: int
    text: str = ""
    """The line itself, where the file is the candidate's; the function, where it is a library."""
    samples: int
    """How often a warp was found there; on cpu, a thread."""
    share: float
    """Of all samples of the launch."""
    stall: str
    """What most of those warps waited for; empty when they did not wait."""
    stall_share: float
    """Of the line's samples."""
    instruction: str
    """The machine instruction of the line with the most samples."""
    sectors_over_ideal: float | None = None
    """Sectors of global memory that the line touches, over what its bytes need; null when it touches none."""

    @property
    def where(self) -> str:
        """`file:line`, or the library."""
        return f"{self.file}:{self.line}" if self.line else self.file


class Hint(Model):
    """What a rule of Nsight Compute found. Its estimates must never be added: they overlap."""

    rule: Text
    """NVIDIA's identifier of the rule."""
    message: Text
    gain_percent: float | None = None
    scope: Literal["kernel", "unit", "unknown"] = "unknown"
    """What the gain refers to: the kernel's time, or the efficiency of one unit by itself."""
    overruled: str = ""
    """Why not to follow it here; empty when nothing speaks against it."""


class Launch(Model):
    """One profiled launch of a kernel. On cpu all calls that were sampled are one."""

    kernel: Text
    share: float
    """Of the time of all launches of the call."""
    seconds: float | None
    """The kernel's time by the GPU's own clock, caches cold."""
    metrics: tuple[Metric, ...]
    stalls: tuple[Stall, ...] = ()
    """Greatest first."""
    lines: tuple[SourceLine, ...] = ()
    """Most samples first."""
    hints: tuple[Hint, ...] = ()

    def value(self, name: str) -> float | None:
        """The metric of this name; None when it is absent or null."""
        return next((m.value for m in self.metrics if m.name == name), None)


class Roofline(Model):
    """Where a candidate stands under the roofs of the contract's floor."""

    seconds: float
    """Measured time of a call."""
    floor_seconds: float
    bound: Literal["memory", "math"]
    """Which roof the task meets."""
    intensity: float
    """FLOP per byte that the task must move."""
    attainable_flops: float
    """The roof at this intensity, FLOP per second."""
    achieved_flops: float
    bandwidth: float
    """Slope of the memory roof, bytes per second."""
    peak_flops: float
    moved_bytes: float | None = None
    """What a call moved through DRAM by the counters, caches cold."""
    moved_reason: str = ""


class DirectionSigns(Model):
    """What the profile says for and against a direction."""

    direction: Direction
    score: int = Field(ge=0, le=4)
    """0: nothing speaks for it; 4: it is what the candidate needs."""
    signs_for: tuple[str, ...] = ()
    """With the values they rest on."""
    signs_against: tuple[str, ...] = ()


class Change(Model):
    """A metric that moved from the parent to this candidate by more than noise."""

    metric: Text
    before: float
    after: float
    unit: str = ""
    better: bool | None = None
    """Null when the direction of good is not clear by itself."""


PredictionVerdict = Literal["held", "partly", "refuted", "unknown"]
"""held: it moved as said; partly: so, but by less; refuted: it did not move, or the other way."""


class Prediction(Model):
    """What the strategy said would move, and what it did."""

    metric: Text
    expected: str
    """In the strategy's words."""
    before: float | None
    after: float | None
    moved: bool | None
    """Whether it moved beyond noise, either way; null when it is not known."""
    verdict: PredictionVerdict = "unknown"
    reason: str = ""


class ParentDiff(Model):
    """This candidate against the one it was made from."""

    parent_id: Text
    changes: tuple[Change, ...]
    unchanged: int
    """Metrics that both have and that did not move."""
    bottleneck_before: Bottleneck
    prediction: Prediction | None = None
    """Null when no strategy named a metric."""


class Profile(Model):
    """What a candidate's binary and run show."""

    bottleneck: Bottleneck
    summary: Text
    """One or two sentences an agent can act on."""
    metrics: tuple[Metric, ...]
    kernels: tuple[KernelResources, ...] = ()
    occupancy: tuple[Occupancy, ...] = ()
    instruction_mix: dict[str, int] = Field(default_factory=dict)
    """Instruction class → count in the binary: fma, tensor, load, store, wide_load, branch, barrier, atomic, special."""
    floor_ratio: float | None = None
    """Measured time / contract floor; null when the candidate was not timed."""
    device: Device | None = None
    counters: str = ""
    """Whether hardware counters were read, on cpu also lines; if not, why and what to do."""
    counters_status: CounterStatus = "not_asked"
    counters_tool: str = ""
    """Version of Nsight Compute, and by what its report was read; on cpu perf_event_open, or nothing."""
    sources_digest: str = ""
    """Of the sources that were profiled."""
    launches: tuple[Launch, ...] = ()
    """All launches of one call that were profiled, in their order; empty where neither counters nor lines are known."""
    roofline: Roofline | None = None
    directions: tuple[DirectionSigns, ...] = ()
    """Greatest score first; empty without counters."""
    diff: ParentDiff | None = None


class Profiled(Model):
    """A profile, and the files that were made for it."""

    profile: Profile
    report: str = ""
    """Nsight Compute's own report in base64, which its GUI opens; empty when there is none."""
    listing: str = ""
    """Machine code of the launches with samples, stalls and source lines; empty without counters."""
