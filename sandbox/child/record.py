"""What verification has seen of one candidate."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Record:
    """What verification has seen so far; becomes a Verification of the model."""

    trials: int = 0
    sampled_calls: int = 0
    worst: dict[str, Any] | None = None
    oracle: str = "float64"
    oracle_share: float = 1.0
    """Of the outputs' elements, how many a float64 oracle covers in each trial."""
    deterministic: bool | None = None
    findings: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    slack: dict[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])
    """(case, output) → greatest slack met on the task's own draw, for the check of timed calls."""
    sliced: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    """(case, output) where slices were seen there that are much smaller than the whole."""

    def as_dict(self) -> dict[str, Any]:
        keys = ("trials", "sampled_calls", "worst", "oracle", "oracle_share", "deterministic", "findings", "notes")
        return {k: getattr(self, k) for k in keys}

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)
