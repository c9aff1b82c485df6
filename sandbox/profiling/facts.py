"""What the judgement reads: one launch, and what the task asks of a whole call. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from hiera_mcp.model.contract import Contract
from hiera_mcp.model.evaluation import Timing
from hiera_mcp.model.profile import Launch

HIGH, LOW_ISSUE = 60.0, 0.6
"""NVIDIA's thresholds: a unit at 60 % of its peak is busy (Compute Triage Guide); below 0.6 instructions per cycle a
scheduler is starved (rule IssueSlotUtilization)."""
CONTRACTIONS = ("gemm", "conv", "attention")


@dataclass(frozen=True)
class TaskFacts:
    """What one call has to do, and what it took."""

    floor_seconds: float
    floor_is_the_contracts: bool
    """Else it is the time of a plain copy on this device, which is more."""
    seconds: float | None
    """Measured time of a call, else the sum of its launches."""
    compulsory_bytes: float
    moved_bytes: float | None
    """Through DRAM, by the counters of all launches; null when one of them does not tell, or was not profiled."""
    complete: bool
    """Whether all launches of the call were profiled."""
    contraction_share: float
    tensor_core_legal: bool
    tensor_core_reason: str

    @property
    def floor_ratio(self) -> float | None:
        return self.seconds / self.floor_seconds if self.seconds and self.floor_seconds else None

    @property
    def moved_ratio(self) -> float | None:
        return (
            None if self.moved_bytes is None or not self.compulsory_bytes else self.moved_bytes / self.compulsory_bytes
        )


@dataclass(frozen=True)
class Facts:
    """One launch beside its task."""

    launch: Launch
    task: TaskFacts

    def get(self, name: str) -> float | None:
        return self.launch.value(name)

    def above(self, name: str, limit: float) -> bool:
        """Whether the metric is known and at least this."""
        value = self.get(name)
        return value is not None and value >= limit

    def below(self, name: str, limit: float) -> bool:
        value = self.get(name)
        return value is not None and value < limit

    def stall(self, reason: str) -> float:
        """Share of the cycles between two instructions of a warp; 0 when it was not seen."""
        return next((s.share for s in self.launch.stalls if s.reason == reason), 0.0)

    def ratio(self, part: Sequence[str], whole: Sequence[str]) -> float | None:
        """Sum of metrics over sum of metrics; None when one is missing or the whole is nothing."""
        parts, wholes = [self.get(n) for n in part], [self.get(n) for n in whole]
        if None in parts or None in wholes:
            return None
        total = sum(v for v in wholes if v is not None)
        return sum(v for v in parts if v is not None) / total if total else None

    @property
    def needs_few_warps(self) -> bool:
        """Whether wgmma or TMA do the work, which a few warps keep busy."""
        return self.above("wgmma_pct", 0.01) or self.above("tma_loads", 1)

    @property
    def starved(self) -> bool:
        """Neither arithmetic nor memory is busy, and schedulers find nothing to issue: the launch waits."""
        return self.below("sm_pct", HIGH) and self.below("memory_pct", HIGH) and self.below("issue_active", LOW_ISSUE)


def task_facts(contract: Contract, timing: Timing | None, launches: Sequence[Launch], most: int) -> TaskFacts:
    """The task's side. The floor is the contract's, or what a plain copy takes on this device where that is more.

    Args:
        most: launches of a call that are profiled at most.
    """
    features = contract.features
    kernels = sum(launch.seconds or 0.0 for launch in launches)
    copy = timing.clocks.floor if timing is not None else 0.0
    complete = len(launches) < most
    return TaskFacts(
        floor_seconds=max(contract.floor.seconds, copy),
        floor_is_the_contracts=contract.floor.seconds >= copy,
        seconds=timing.candidate.median if timing is not None else (kernels or None) if complete else None,
        compulsory_bytes=features.compulsory_bytes,
        moved_bytes=moved(launches) if complete else None,
        complete=complete,
        contraction_share=sum(o.share for o in features.operators if o.kind in CONTRACTIONS),
        tensor_core_legal=features.tensor_core_legal,
        tensor_core_reason=features.tensor_core_reason,
    )


def moved(launches: Sequence[Launch]) -> float | None:
    """Bytes through DRAM of all launches; None when one does not tell, or there are none."""
    values = [launch.value(name) for launch in launches for name in ("dram_read", "dram_write")]
    known = [v for v in values if v is not None]
    return sum(known) if known and len(known) == len(values) else None
