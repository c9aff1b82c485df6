"""Priors: how much more than others a space or a direction brought in earlier runs, for a situation like the present one.

Few rounds are ever alike in everything, so the estimate backs off from specific cells to general ones (shrinkage, as in
empirical Bayes): beginning with the rounds that are least alike, the estimate so far counts as PSEUDO_ROUNDS rounds among
those that are more alike. Every round counts once, and many rounds that are alike outweigh any number that are not.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from hiera_mcp.model.base import Model
from hiera_mcp.model.contract import OperatorKind
from hiera_mcp.model.evaluation import Interval
from hiera_mcp.model.memory import Bound, Cell, RoundRecord, bound_of, device_key, dominant_kind, is_cpu_space
from hiera_mcp.model.space import Direction, Space, is_cpu
from hiera_mcp.planning.evidence import Evidence
from hiera_mcp.planning.parents import speedup_ratio
from hiera_mcp.planning.scoring import Answer, Missing, View

Option = TypeVar("Option")

PSEUDO_ROUNDS = 2.0
"""Rounds for which the estimate from less alike rounds counts."""
USUAL_GAIN = math.log(1.25)
"""What a round is expected to bring before any was seen; it counts for PSEUDO_ROUNDS rounds."""
HALF_WEIGHT_ROUNDS = 8.0
"""Rounds with which memory has half of its greatest weight."""
GREATEST_GAIN = math.log(4)
"""More says more about the code that a round started from than about what was tried."""
POINT = math.log(1.25)
"""A point of the score: a gain that is 1.25 times that of the average option."""
MIDDLE = 2.0
"""The score of an option that brings as much as the average one."""


class Situation(Model):
    """What earlier rounds are compared with."""

    cpu: bool
    operator_kind: OperatorKind
    bound: Bound
    device: str
    space: Space | None = None
    """The decided space, when a direction is asked for."""


class Prior(Model):
    """What memory says of one option."""

    rounds: int
    """Rounds of this option on this platform."""
    alike: int
    """Those of them on the same kind of operator."""
    won: int
    failed: int
    advantage: float
    """Expected gain / that of the average option."""
    weight: float
    """Between 0 and 1, the same for all options of a decision."""


@dataclass(frozen=True)
class _Seen:
    """A cell as the present situation sees it."""

    cell: Cell
    reached: int
    """How many levels of likeness it reaches; the first is the kind of operator."""
    surplus: float
    """How much more its rounds brought than such rounds bring on average, summed (log scale)."""


Matches = Callable[[Cell], bool]
_Bounds = tuple[float, float, float]


def gain(record: RoundRecord) -> float:
    """Natural logarithm of a round's gain: its best candidate over all before it, or over eager PyTorch in the first.

    By the same rule by which a round is won: 0 unless the whole interval lies above 1. Keeping what was there costs
    nothing. Never above GREATEST_GAIN.
    """
    return 0.0 if record.best is None else _gain(_bounds(record.best), record.before and _bounds(record.before))


def _bounds(interval: Interval) -> _Bounds:
    return interval.median, interval.low, interval.high


@lru_cache(maxsize=1 << 16)
def _gain(best: _Bounds, before: _Bounds | None) -> float:
    """Remembered, since every decision counts all rounds again."""
    ratio = _interval(best) if before is None else speedup_ratio(_interval(best), _interval(before))
    return min(math.log(ratio.median), GREATEST_GAIN) if ratio.low > 1 else 0.0


def _interval(bounds: _Bounds) -> Interval:
    return Interval(median=bounds[0], low=bounds[1], high=bounds[2])


def cells_of(records: Iterable[RoundRecord]) -> tuple[Cell, ...]:
    """The records counted together, in a fixed order; the order of the records does not matter."""
    groups: dict[tuple[str, str, str, str, str, bool], list[RoundRecord]] = defaultdict(list)
    for r in records:
        first = r.before is None
        groups[(r.operator_kind, r.bound, r.device, r.space, r.direction or "", first)].append(r)
    return tuple(_cell(groups[key]) for key in sorted(groups))


def _cell(records: Sequence[RoundRecord]) -> Cell:
    one, gains = records[0], [gain(r) for r in records]
    return Cell(
        operator_kind=one.operator_kind,
        bound=one.bound,
        device=one.device,
        space=one.space,
        direction=one.direction,
        first=one.before is None,
        rounds=len(records),
        won=sum(g > 0 for g in gains),
        failed=sum(r.best is None for r in records),
        gain=math.fsum(gains),
    )


def space_priors(cells: Sequence[Cell], situation: Situation, spaces: Sequence[Space]) -> dict[Space, Prior] | None:
    """What earlier rounds say of each space; None when there are none on this platform."""
    here = [c for c in cells if is_cpu_space(c.space) == situation.cpu]
    return _priors(here, spaces, lambda c: c.space, _levels(situation)) if here else None


def direction_priors(cells: Sequence[Cell], situation: Situation) -> dict[Direction, Prior] | None:
    """What earlier rounds say of each direction; None when there are none with a direction on this platform."""
    here = [c for c in cells if is_cpu_space(c.space) == situation.cpu and c.direction is not None]
    return _priors(here, tuple(Direction), lambda c: c.direction, _levels(situation)) if here else None


def situation_of(evidence: Evidence, space: Space | None = None) -> Situation:
    """The present situation, as far as earlier rounds can be compared with it."""
    return Situation(
        cpu=is_cpu(evidence.target),
        operator_kind=dominant_kind(evidence.features),
        bound=bound_of(evidence.profile, evidence.floor),
        device=device_key(evidence.target, evidence.gpu.name if evidence.gpu else None),
        space=space,
    )


def answer_of(view: View[Option], priors: Mapping[Option, Prior] | None) -> Answer:
    """The answer of the criterion `memory`. Raises Missing when nothing is known."""
    if priors is None:
        view.quote("earlier_runs", None)
        raise Missing(view.evidence.memory_reason or "no earlier run on this platform has a round like this one")
    prior = priors[view.option]
    view.quote(
        "earlier_runs", {**prior.model_dump(), "advantage": round(prior.advantage, 3), "weight": round(prior.weight, 3)}
    )
    return Answer(MIDDLE + math.log(prior.advantage) / POINT, _why(prior), share=prior.weight)


def _why(prior: Prior) -> str:
    expected = f"{prior.advantage:.2f}× the gain of the average option is expected"
    if prior.rounds == 0:
        return f"No earlier round tried it; {expected}."
    plural = "" if prior.rounds == 1 else "s"
    return (
        f"{prior.rounds} earlier round{plural} ({prior.alike} on such operators): {prior.won} gained, in {prior.failed} "
        f"nothing passed; {expected}."
    )


def _levels(situation: Situation) -> tuple[Matches, ...]:
    """What makes earlier rounds alike, the most telling first; each level keeps to all before it."""
    levels: list[Matches] = [
        lambda c: c.operator_kind == situation.operator_kind,
        lambda c: c.bound == situation.bound,
        lambda c: c.device == situation.device,
    ]
    if situation.space is not None:
        levels.insert(2, lambda c: c.space is situation.space)
    return tuple(levels)


def _priors(
    cells: Sequence[Cell], options: Sequence[Option], option_of: Callable[[Cell], object], levels: Sequence[Matches]
) -> dict[Option, Prior]:
    expected = _expectations(cells)
    seen = [_Seen(c, _reached(c, levels), c.gain - c.rounds * expected[c.first, c.operator_kind]) for c in cells]
    own = {option: [s for s in seen if option_of(s.cell) == option] for option in options}
    surplus = {option: _shrunk(own[option], len(levels)) for option in options}
    average = math.fsum(surplus.values()) / len(options)
    alike = sum(s.cell.rounds * (1 + s.reached) for s in seen) / (1 + len(levels))
    weight = alike / (alike + HALF_WEIGHT_ROUNDS)
    return {o: _prior(own[o], math.exp(surplus[o] - average), weight) for o in options}


def _prior(seen: Sequence[_Seen], advantage: float, weight: float) -> Prior:
    return Prior(
        rounds=sum(s.cell.rounds for s in seen),
        alike=sum(s.cell.rounds for s in seen if s.reached > 0),
        won=sum(s.cell.won for s in seen),
        failed=sum(s.cell.failed for s in seen),
        advantage=advantage,
        weight=weight,
    )


def _expectations(cells: Sequence[Cell]) -> dict[tuple[bool, OperatorKind], float]:
    """What a round brought on average, by whether it was a first one and by kind of operator.

    First rounds gain more, since they start from eager PyTorch, and some operators have more to gain: an option is not
    better because it was tried where much was to be had.
    """
    stages: dict[tuple[bool, OperatorKind], list[Cell]] = defaultdict(list)
    for c in cells:
        stages[c.first, c.operator_kind].append(c)
    sums = {key: (sum(c.rounds for c in part), math.fsum(c.gain for c in part)) for key, part in stages.items()}
    found: dict[tuple[bool, OperatorKind], float] = {}
    for key, (rounds, total) in sums.items():
        others = [value for other, value in sums.items() if other[0] == key[0] and other != key]
        usual = _mean(sum(n for n, _ in others), math.fsum(g for _, g in others), USUAL_GAIN)
        found[key] = _mean(rounds, total, usual)
    return found


def _shrunk(seen: Sequence[_Seen], levels: int) -> float:
    """How much more than expected these rounds brought (log scale): from the least alike to the most alike."""
    estimate = 0.0
    for reached in range(levels + 1):
        ring = [s for s in seen if s.reached == reached]
        estimate = _mean(sum(s.cell.rounds for s in ring), math.fsum(s.surplus for s in ring), estimate)
    return estimate


def _reached(cell: Cell, levels: Sequence[Matches]) -> int:
    """How many levels a cell reaches, each on top of those before it."""
    return next((n for n, level in enumerate(levels) if not level(cell)), len(levels))


def _mean(rounds: int, total: float, before: float) -> float:
    """The mean of what was seen, with `before` for PSEUDO_ROUNDS further rounds."""
    return (total + PSEUDO_ROUNDS * before) / (rounds + PSEUDO_ROUNDS)
