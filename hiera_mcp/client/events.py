"""What a driven run tells while it runs. The client never prints; whoever drives it decides what to show."""

from collections.abc import Callable
from dataclasses import dataclass

from hiera_mcp.client.report import CandidateRow, ContractView, DecisionRow, RunView


@dataclass(frozen=True)
class Progress:
    """Work goes on."""

    message: str
    fraction: float | None
    """0 to 1, where it can be told."""


@dataclass(frozen=True)
class ContractBuilt:
    contract: ContractView


@dataclass(frozen=True)
class RunStarted:
    run: RunView


@dataclass(frozen=True)
class Decided:
    """A decision was recorded."""

    decision: DecisionRow


@dataclass(frozen=True)
class Evaluated:
    """All candidates of a round have their verdicts."""

    round: int
    rows: tuple[CandidateRow, ...]


Event = Progress | ContractBuilt | RunStarted | Decided | Evaluated
Tell = Callable[[Event], None]
