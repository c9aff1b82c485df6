"""Priors: how much more than others a space or a direction brought in earlier runs, for a situation like the present one.

Few rounds are ever alike in everything, so the estimate backs off from specific cells to general ones (shrinkage, as in
empirical Bayes): beginning with the rounds that are least alike, the estimate so far counts as PSEUDO_ROUNDS rounds among
those that are more alike. Every round counts once, and many rounds that are alike outweigh any number that are not.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hiera_mcp.model.base import Model
from hiera_mcp.model.contract import OperatorKind
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
class _Sum:
    """Rounds, and the sum of their gains (log scale)."""

    rounds: int
    gain: float


Matches = Callable[[Cell], bool]


def gain(record: RoundRecord) -> float:
    """Natural logarithm of a round's gain: its best candidate over all before it, or over eager PyTorch in the first.

    By the same rule by which a round is won: 0 unless the whole interval lies above 1. Keeping what was there costs
    nothing. Never above GREATEST_GAIN.
    """
    if record.best is None:
        return 0.0
    ratio = record.best if record.before is None else speedup_ratio(record.best, record.before)
    return min(math.log(ratio.median), GREATEST_GAIN) if ratio.low > 1 else 0.0


def cells_of(records: Iterable[RoundRecord]) -> tuple[Cell, ...]:
    """The records counted together, in a fixed order; the order of the records does not matter."""
    groups: dict[tuple[object, ...], list[RoundRecord]] = defaultdict(list)
    for r in records:
        first = r.before is None
        groups[(r.operator_kind, r.bound, r.device, r.space, r.direction or "", first)].append(r)
    return tuple(_cell(groups[key]) for key in sorted(groups, key=str))


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
    own = {option: [c for c in cells if option_of(c) == option] for option in options}
    surplus = {option: _shrunk(own[option], expected, levels) for option in options}
    average = math.fsum(surplus.values()) / len(options)
    alike = math.fsum(c.rounds * (1 + _reached(c, levels)) for c in cells) / (1 + len(levels))
    weight = alike / (alike + HALF_WEIGHT_ROUNDS)
    return {o: _prior(own[o], levels[0], math.exp(surplus[o] - average), weight) for o in options}


def _prior(cells: Sequence[Cell], alike: Matches, advantage: float, weight: float) -> Prior:
    return Prior(
        rounds=sum(c.rounds for c in cells),
        alike=sum(c.rounds for c in cells if alike(c)),
        won=sum(c.won for c in cells),
        failed=sum(c.failed for c in cells),
        advantage=advantage,
        weight=weight,
    )


def _expectations(cells: Sequence[Cell]) -> dict[tuple[bool, OperatorKind], float]:
    """What a round brought on average, by whether it was a first one and by kind of operator.

    First rounds gain more, since they start from eager PyTorch, and some operators have more to gain: an option is not
    better because it was tried where much was to be had.
    """
    found: dict[tuple[bool, OperatorKind], float] = {}
    stages: dict[tuple[bool, OperatorKind], None] = {(c.first, c.operator_kind): None for c in cells}
    for first, kind in stages:
        stage = [c for c in cells if c.first is first]
        others = _mean(_total([c for c in stage if c.operator_kind != kind]), USUAL_GAIN)
        found[first, kind] = _mean(_total([c for c in stage if c.operator_kind == kind]), others)
    return found


def _shrunk(
    cells: Sequence[Cell], expected: Mapping[tuple[bool, OperatorKind], float], levels: Sequence[Matches]
) -> float:
    """How much more than expected these cells brought (log scale): from the least alike rounds to the most alike."""
    estimate = 0.0
    for reached in range(len(levels) + 1):
        estimate = _mean(_surplus([c for c in cells if _reached(c, levels) == reached], expected), estimate)
    return estimate


def _reached(cell: Cell, levels: Sequence[Matches]) -> int:
    """How many levels a cell reaches, each on top of those before it."""
    return next((n for n, level in enumerate(levels) if not level(cell)), len(levels))


def _total(cells: Sequence[Cell]) -> _Sum:
    return _Sum(sum(c.rounds for c in cells), math.fsum(c.gain for c in cells))


def _surplus(cells: Sequence[Cell], expected: Mapping[tuple[bool, OperatorKind], float]) -> _Sum:
    more = math.fsum(c.gain - c.rounds * expected[c.first, c.operator_kind] for c in cells)
    return _Sum(sum(c.rounds for c in cells), more)


def _mean(seen: _Sum, before: float) -> float:
    """The mean of what was seen, with `before` for PSEUDO_ROUNDS further rounds."""
    return (seen.gain + PSEUDO_ROUNDS * before) / (seen.rounds + PSEUDO_ROUNDS)
