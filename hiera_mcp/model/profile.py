"""Evidence about what bounds a candidate. A missing metric is null with a reason, never zero."""

from typing import Literal

from pydantic import Field

from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.evaluation import Device, KernelResources


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


class Profile(Model):
    """What a candidate's binary and run show."""

    bottleneck: Literal["memory", "compute", "latency", "launch", "unknown"]
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
    """Whether hardware counters were read; if not, why and what to do."""
