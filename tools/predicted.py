"""What strategies predicted, held against what came of it: for profiles and for the status of a run."""

from collections.abc import Iterator, Mapping, Sequence

from hiera_mcp.model.contract import Contract
from hiera_mcp.model.evaluation import Comparison
from hiera_mcp.model.knowledge import SignalValue
from hiera_mcp.model.plan import Strategy
from hiera_mcp.model.profile import ParentDiff, Prediction, Profile
from hiera_mcp.planning.changes import compare
from hiera_mcp.planning.evidence import Outcome, gather
from hiera_mcp.planning.parents import verdict_of, versus
from hiera_mcp.planning.predictions import BY_TIME, GOOD, by_time, told, unknown
from hiera_mcp.planning.signals import read
from hiera_mcp.store import RecordedDecision

ORDER = ("held", "partly", "refuted", "unknown")
EAGER = "eager PyTorch"


def strategy_of(decisions: Sequence[RecordedDecision], round: int) -> Strategy | None:
    """What was planned in a round, as it was decided last."""
    made = (d.decision.strategy for d in decisions if d.round == round)
    return next((s for s in reversed(list(made)) if s is not None), None)


def diff_of(
    strategy: Strategy | None, contract: Contract, child: Outcome, parent: Outcome, new: Profile, old: Profile | None
) -> ParentDiff | None:
    """What moved from parent to child; None when nothing can be said."""
    metric, expected = (strategy.predicted_metric, strategy.predicted_change) if strategy else ("", "")
    said = _by_time(metric, expected, child, parent) if metric in BY_TIME else None
    if old is None:
        reason = f"{parent.name} ({parent.candidate_id}) has not been profiled"
        said = said or (unknown(metric, expected, reason) if metric else None)
        return None if said is None else _without_profile(parent.candidate_id, said)
    values = _value(contract, parent, old, metric), _value(contract, child, new, metric)
    found = compare(parent.candidate_id, old, new, metric, expected, values)
    return found.model_copy(update={"prediction": said or found.prediction})


def texts(
    decisions: Sequence[RecordedDecision],
    outcomes: Sequence[Outcome],
    parents: Mapping[str, str | None],
    profiled: Mapping[str, Prediction],
) -> dict[str, str]:
    """Decision id → what became of the prediction of its strategy; only for strategies that predict something.

    Args:
        parents: candidate id → id of its parent.
        profiled: candidate id → the prediction as its profile tells it.
    """
    by_id = {o.candidate_id: o for o in outcomes}
    last = {d.round: d for d in decisions if d.decision.strategy and d.decision.strategy.predicted_metric}
    made: dict[str, str] = {}
    for round, decision in last.items():
        strategy = strategy_of(decisions, round)
        if strategy is None or strategy is not decision.decision.strategy:
            continue
        children = [o for o in outcomes if o.round == round and o.passed]
        found = list(_found(strategy, children, by_id, parents, profiled))
        if children:
            made[decision.id] = _best(found, strategy)
    return made


def _found(
    strategy: Strategy,
    children: Sequence[Outcome],
    by_id: Mapping[str, Outcome],
    parents: Mapping[str, str | None],
    profiled: Mapping[str, Prediction],
) -> Iterator[tuple[Prediction, str]]:
    metric, expected = strategy.predicted_metric, strategy.predicted_change
    for child in children:
        parent = by_id.get(parents.get(child.candidate_id) or "")
        said = _by_time(metric, expected, child, parent) if metric in BY_TIME else profiled.get(child.candidate_id)
        if said is not None:
            yield said, f"{child.name} against {parent.name if parent else EAGER}"


def _best(found: Sequence[tuple[Prediction, str]], strategy: Strategy) -> str:
    """One candidate that shows it is enough."""
    if not found:
        metric, expected = strategy.predicted_metric, strategy.predicted_change
        return told(unknown(metric, expected, "no candidate of the round is profiled beside its parent"))
    said, who = min(found, key=lambda pair: ORDER.index(pair[0].verdict))
    return f"{told(said)}, {who}"


def _by_time(metric: str, expected: str, child: Outcome, parent: Outcome | None) -> Prediction | None:
    if child.timing is None:
        return None
    if parent is None:
        speedup = child.timing.speedup
        against = Comparison(verdict=verdict_of(speedup), ratio=speedup, basis=EAGER)
        return by_time(metric, expected, against, child.timing.reference.median if metric == "time" else 1.0)
    comparison, before = versus(child, parent), _timed(metric, parent)
    return by_time(metric, expected, comparison, before) if comparison and before is not None else None


def _timed(metric: str, outcome: Outcome) -> float | None:
    if outcome.timing is None:
        return None
    return {
        "time": outcome.timing.candidate.median,
        "speedup": outcome.timing.speedup.median,
        "floor_ratio": outcome.floor_ratio,
    }[metric]


def _value(contract: Contract, outcome: Outcome, profile: Profile, metric: str) -> SignalValue:
    """The signal of that name for one candidate; None when it is none of a candidate's."""
    if metric == "launches":
        return len(profile.launches) or None
    if metric not in GOOD or metric in BY_TIME:
        return None
    return read(gather(contract, [outcome], profile=profile), metric).value


def _without_profile(parent_id: str, said: Prediction) -> ParentDiff:
    return ParentDiff(parent_id=parent_id, changes=(), unchanged=0, bottleneck_before="unknown", prediction=said)
