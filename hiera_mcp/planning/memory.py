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
from typing import NamedTuple, TypeVar

from hiera_mcp.model.base import Model
from hiera_mcp.model.contract import OperatorKind
from hiera_mcp.model.evaluation import Interval
from hiera_mcp.model.memory import Bound, Cell, RoundRecord, Surplus, bound_of, device_key, dominant_kind, is_cpu_space
from hiera_mcp.model.space import Direction, Space, is_cpu
from hiera_mcp.planning.evidence import Evidence
from hiera_mcp.planning.parents import speedup_ratio
from hiera_mcp.planning.scoring import Answer, Missing, View

Option = TypeVar("Option")

FEWEST_PSEUDO_ROUNDS, MOST_PSEUDO_ROUNDS = 2.0, 50.0
"""Between these lies for how many rounds the estimate from less alike rounds counts."""
HALF_WEIGHT_ROUNDS = 8.0
"""Rounds with which memory has half of its greatest weight."""
MOST = math.log(16)
"""No round counts for a greater gain, loss or room: beyond, they say more of the code at hand than of what was tried."""
LOSS = -math.log(4)
"""What a round counts for in which nothing passed."""
USUAL_ROOM = math.log(4)
"""Room of a round that is not known, of a pseudo-round, and of the code for which an advantage is stated: 4 times the floor."""
USUAL_SHARE = 0.2
"""Part of the room that a round is expected to gain before any was seen."""
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


_Circle = str
"""Names rounds that have something in common."""
_Circles = tuple[_Circle, _Circle, _Circle]
"""Among which rounds a round is: the narrowest circle first."""


class _Round(NamedTuple):
    """A round with its numbers, on the log scale, and the circles with which it is compared."""

    record: RoundRecord
    gain: float
    room: float
    of_task: _Circles
    of_space: _Circles


@dataclass(frozen=True)
class _Seen:
    """A cell as the present situation sees it."""

    cell: Cell
    surplus: Surplus
    reached: int
    """How many levels of likeness it reaches; the first is the kind of operator."""


Matches = Callable[[Cell], bool]
_Bounds = tuple[float, float, float]


def gain(record: RoundRecord) -> float:
    """Natural logarithm of a round's gain: its best candidate over all before it, or over eager PyTorch in the first.

    Negative for what is slower, since how much slower says what to expect of the like. Between -MOST and MOST; a round in
    which nothing passed counts as LOSS.
    """
    if record.best is None:
        return LOSS
    return _gain(_bounds(record.best), record.before and _bounds(record.before))


def _bounds(interval: Interval) -> _Bounds:
    return interval.median, interval.low, interval.high


@lru_cache(maxsize=1 << 16)
def _gain(best: _Bounds, before: _Bounds | None) -> float:
    """Remembered, since every decision counts all rounds again."""
    ratio = _ratio(best, before)
    return max(-MOST, min(math.log(ratio.median), MOST)) if ratio.median > 0 else -MOST


def _won(record: RoundRecord) -> bool:
    """Whether something was faster than what was there before: the whole interval lies above 1."""
    return record.best is not None and _ratio(_bounds(record.best), record.before and _bounds(record.before)).low > 1


def _ratio(best: _Bounds, before: _Bounds | None) -> Interval:
    return _interval(best) if before is None else speedup_ratio(_interval(best), _interval(before))


def _interval(bounds: _Bounds) -> Interval:
    return Interval(median=bounds[0], low=bounds[1], high=bounds[2])


def room(record: RoundRecord) -> float:
    """Natural logarithm of the most that a round could gain; never above MOST."""
    return USUAL_ROOM if record.room is None else min(record.room, MOST)


def cells_of(records: Iterable[RoundRecord]) -> tuple[Cell, ...]:
    """The records counted together, in a fixed order; the order of the records does not matter."""
    rounds = [_Round(r, gain(r), room(r), _circles(r, ""), _circles(r, r.space)) for r in records]
    expected = _expectations([(r, r.of_task) for r in rounds]) | _expectations([(r, r.of_space) for r in rounds])
    groups: dict[tuple[str, str, str, str, str, bool], list[_Round]] = defaultdict(list)
    for one in rounds:
        r = one.record
        groups[r.operator_kind, r.bound, r.device, r.space, r.direction or "", r.before is None].append(one)
    return tuple(_cell(groups[key], expected) for key in sorted(groups))


def _cell(rounds: Sequence[_Round], expected: Mapping[_Circle, float]) -> Cell:
    one = rounds[0].record
    return Cell(
        operator_kind=one.operator_kind,
        bound=one.bound,
        device=one.device,
        space=one.space,
        direction=one.direction,
        first=one.before is None,
        rounds=len(rounds),
        won=sum(_won(r.record) for r in rounds),
        failed=sum(r.record.best is None for r in rounds),
        room=math.fsum(r.room for r in rounds),
        over_task=_surplus([r.gain - r.room * expected[r.of_task[0]] for r in rounds]),
        over_space=_surplus([r.gain - r.room * expected[r.of_space[0]] for r in rounds]),
    )


def _surplus(found: Sequence[float]) -> Surplus:
    return Surplus(total=math.fsum(found), squares=math.fsum(x * x for x in found))


def _circles(record: RoundRecord, space: str) -> _Circles:
    """Of its task, of its kind of operator, of its stage: all on its platform, and in `space` if one is named."""
    stage = f"{record.device == 'cpu'} {record.before is None} {space}"
    kind = f"{stage} {record.operator_kind}"
    return f"{kind} {record.device} {record.task_id}", kind, stage


def _expectations(rounds: Sequence[tuple[_Round, _Circles]]) -> dict[_Circle, float]:
    """Narrowest circle → the part of its room that a round is expected to gain, whatever is tried in it: as rounds of the
    same task did, of the same kind of operator, and of the same stage, each more general one with FEWEST_PSEUDO_ROUNDS in
    the next.

    Some tasks have more to gain, and so have first rounds: an option is not better because it was tried there.
    """
    gains: dict[_Circle, list[float]] = defaultdict(list)
    rooms: dict[_Circle, list[float]] = defaultdict(list)
    for r, circles in rounds:
        for circle in circles:
            gains[circle].append(r.gain)
            rooms[circle].append(r.room)
    sums = {circle: (math.fsum(gains[circle]), math.fsum(rooms[circle])) for circle in gains}
    expected: dict[_Circle, float] = {}
    for task, kind, stage in dict.fromkeys(circles for _, circles in rounds):
        share = _share(*_without(sums[stage], sums[kind]), USUAL_SHARE, FEWEST_PSEUDO_ROUNDS)
        share = _share(*_without(sums[kind], sums[task]), share, FEWEST_PSEUDO_ROUNDS)
        expected[task] = _share(*sums[task], share, FEWEST_PSEUDO_ROUNDS)
    return expected


def _without(all_of_them: tuple[float, float], these: tuple[float, float]) -> tuple[float, float]:
    return all_of_them[0] - these[0], max(0.0, all_of_them[1] - these[1])


def space_priors(cells: Sequence[Cell], situation: Situation, spaces: Sequence[Space]) -> dict[Space, Prior] | None:
    """What earlier rounds say of each space; None when there are none on this platform."""
    here = [c for c in cells if is_cpu_space(c.space) == situation.cpu]
    levels = _levels(situation)
    seen = [_Seen(c, c.over_task, _reached(c, levels)) for c in here]
    return _priors(seen, spaces, lambda c: c.space, len(levels)) if here else None


def direction_priors(cells: Sequence[Cell], situation: Situation) -> dict[Direction, Prior] | None:
    """What earlier rounds say of each direction; None when there are none with a direction on this platform."""
    here = [c for c in cells if is_cpu_space(c.space) == situation.cpu and c.direction is not None]
    levels = _levels(situation)
    seen = [_Seen(c, c.over_space, _reached(c, levels)) for c in here]
    return _priors(seen, tuple(Direction), lambda c: c.direction, len(levels)) if here else None


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
    seen: Sequence[_Seen], options: Sequence[Option], option_of: Callable[[Cell], object], levels: int
) -> dict[Option, Prior]:
    own: dict[Option, list[_Seen]] = {option: [s for s in seen if option_of(s.cell) == option] for option in options}
    pseudo = _pseudo_rounds(own)
    surplus = {option: _shrunk(own[option], levels, pseudo) for option in options}
    average = math.fsum(surplus.values()) / len(options)
    alike = sum(s.cell.rounds * (1 + s.reached) for s in seen) / (1 + levels)
    weight = alike / (alike + HALF_WEIGHT_ROUNDS)
    return {o: _prior(own[o], math.exp(USUAL_ROOM * (surplus[o] - average)), weight) for o in options}


def _prior(seen: Sequence[_Seen], advantage: float, weight: float) -> Prior:
    return Prior(
        rounds=sum(s.cell.rounds for s in seen),
        alike=sum(s.cell.rounds for s in seen if s.reached > 0),
        won=sum(s.cell.won for s in seen),
        failed=sum(s.cell.failed for s in seen),
        advantage=advantage,
        weight=weight,
    )


def _pseudo_rounds(own: Mapping[Option, Sequence[_Seen]]) -> float:
    """Spread of the rounds of one option on one kind of operator / spread between those groups, as variances.

    Where options do not differ beyond the spread of their rounds, what was seen counts for little.
    """
    groups: dict[tuple[object, OperatorKind], list[_Seen]] = defaultdict(list)
    for option, seen in own.items():
        for s in seen:
            groups[option, s.cell.operator_kind].append(s)
    if len(groups) < 2 or sum(s.cell.rounds for seen in groups.values() for s in seen) <= len(groups):
        return FEWEST_PSEUDO_ROUNDS
    within, between = _variances([*groups.values()])
    if between * MOST_PSEUDO_ROUNDS <= within:
        return MOST_PSEUDO_ROUNDS
    return max(FEWEST_PSEUDO_ROUNDS, within / between)


def _variances(groups: Sequence[Sequence[_Seen]]) -> tuple[float, float]:
    """Of rounds within a group, and of the groups' means, by analysis of variance (one way, method of moments)."""
    counts = [sum(s.cell.rounds for s in seen) for seen in groups]
    means = [math.fsum(s.surplus.total for s in seen) / n for seen, n in zip(groups, counts, strict=True)]
    rounds, degrees = sum(counts), len(counts) - 1
    mean = math.fsum(n * m for n, m in zip(counts, means, strict=True)) / rounds
    explained = math.fsum(n * (m - mean) ** 2 for n, m in zip(counts, means, strict=True))
    squares = math.fsum(s.surplus.squares for seen in groups for s in seen)
    within = max(0.0, squares - math.fsum(n * m * m for n, m in zip(counts, means, strict=True))) / (
        rounds - len(counts)
    )
    size = (rounds - sum(n * n for n in counts) / rounds) / degrees
    return within, (explained / degrees - within) / size


def _shrunk(seen: Sequence[_Seen], levels: int, pseudo_rounds: float) -> float:
    """Part of the room that these rounds gained beyond what was to be expected: from the least alike to the most alike."""
    estimate = 0.0
    for reached in range(levels + 1):
        ring = [s for s in seen if s.reached == reached]
        gained, room = math.fsum(s.surplus.total for s in ring), math.fsum(s.cell.room for s in ring)
        estimate = _share(gained, room, estimate, pseudo_rounds)
    return estimate


def _reached(cell: Cell, levels: Sequence[Matches]) -> int:
    """How many levels a cell reaches, each on top of those before it."""
    return next((n for n, level in enumerate(levels) if not level(cell)), len(levels))


def _share(gained: float, room: float, before: float, pseudo_rounds: float) -> float:
    """Gain over room, with `before` for so many further rounds. A round without room says nothing."""
    pseudo = pseudo_rounds * USUAL_ROOM
    return (gained + pseudo * before) / (room + pseudo)
