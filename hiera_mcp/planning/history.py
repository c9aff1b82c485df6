"""What this run has shown so far, per space and per direction."""

from pydantic import JsonValue

from hiera_mcp.model.base import Model
from hiera_mcp.model.space import Direction, Space
from hiera_mcp.planning.evidence import Evidence, Outcome
from hiera_mcp.planning.parents import best_of, versus


class Record(Model):
    """Candidates of one space or direction that have a verdict."""

    attempts: int
    passed: int
    best: Outcome | None

    def as_evidence(self) -> dict[str, JsonValue]:
        speedup = self.best.speedup if self.best is not None else None
        return {
            "attempts": self.attempts,
            "passed": self.passed,
            "best_speedup": None if speedup is None else round(speedup.median, 3),
        }


def record_of_space(evidence: Evidence, space: Space) -> Record:
    return _record([o for o in evidence.outcomes if o.space is space])


def record_of_direction(evidence: Evidence, direction: Direction) -> Record:
    return _record([o for o in evidence.outcomes if o.direction is direction])


def won_rounds(evidence: Evidence, direction: Direction) -> tuple[int, ...]:
    """Rounds in which the direction gave something faster than all before it (than eager PyTorch, in the first one)."""
    return tuple(r for r in _rounds(evidence, direction) if _won(evidence, direction, r))


def lost_rounds(evidence: Evidence, direction: Direction) -> tuple[int, ...]:
    """Rounds in which the direction was tried and judged, and gave nothing faster than what was there before."""
    return tuple(r for r in _rounds(evidence, direction) if not _won(evidence, direction, r))


def _record(outcomes: list[Outcome]) -> Record:
    judged = [o for o in outcomes if o.judged]
    return Record(attempts=len(judged), passed=sum(o.passed for o in judged), best=best_of(judged))


def _rounds(evidence: Evidence, direction: Direction) -> list[int]:
    return sorted({o.round for o in evidence.outcomes if o.direction is direction and o.judged})


def _won(evidence: Evidence, direction: Direction, round: int) -> bool:
    before = best_of([o for o in evidence.outcomes if o.round < round])
    tried = [o for o in evidence.outcomes if o.round == round and o.direction is direction]
    return any(_beats(o, before) for o in tried)


def _beats(outcome: Outcome, before: Outcome | None) -> bool:
    if outcome.timing is None:
        return False
    if before is None or before.timing is None:
        return outcome.timing.speedup.low > 1
    found = versus(outcome, before)
    return found is not None and found.verdict == "faster"
