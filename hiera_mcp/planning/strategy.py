"""SPA: which techniques fit the direction, as strategies ready to be chosen. One function per criterion of strategy.yaml."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from hiera_mcp.model.knowledge import Entry, Match
from hiera_mcp.model.plan import OptionScore, Strategy
from hiera_mcp.planning.evidence import Evidence
from hiera_mcp.planning.gates import entry_gates
from hiera_mcp.planning.legality import decided_space
from hiera_mcp.planning.limits import limits_text
from hiera_mcp.planning.predictions import GOOD
from hiera_mcp.planning.rubrics import Rubric, load_rubric
from hiera_mcp.planning.scoring import Answer, Missing, Scorer, View, apply
from hiera_mcp.planning.signals import read

EntryView = View[Entry]
UNCHANGED = "Interface, shapes and results within the contract's tolerance stay as they are."


def score_entries(
    evidence: Evidence, entries: Sequence[Match], rubric: Rubric | None = None
) -> tuple[OptionScore, ...]:
    """Each entry as an option (its slug), scored and gated, in the order given."""
    rubric = rubric or load_rubric("strategy")
    return tuple(_score_entry(evidence, match.entry, rubric) for match in entries)


def _score_entry(evidence: Evidence, entry: Entry, rubric: Rubric) -> OptionScore:
    score = apply(rubric, STRATEGY_CRITERIA, evidence, entry)
    return score.model_copy(update={"option": entry.id, "gates": entry_gates(evidence, entry)})


def template(entry: Entry, evidence: Evidence) -> Strategy:
    """An entry as a strategy for the decided space and direction. Parameters hold the range to choose from."""
    way = GOOD.get(entry.must_move, "")  # an entry of a user may name a signal that no candidate moves
    return Strategy(
        title=entry.title,
        space=decided_space(evidence),
        direction=evidence.direction,
        steps=entry.steps,
        constraints=(*entry.constraints, *standing(evidence)),
        parameters=dict(entry.parameters),
        predicted_metric=entry.must_move if way else "",
        predicted_change=f"{way}: {entry.expected}" if way else entry.expected,
        knowledge=(entry.id,),
    )


def standing(evidence: Evidence) -> tuple[str, ...]:
    """What holds for every strategy: what must not change, and what the target can hold."""
    return tuple(filter(None, (UNCHANGED, limits_text(evidence))))


def signature_match(view: EntryView) -> Answer:
    conditions = view.option.signature
    results = [
        (c, view.known(c.signal) and c.holds({c.signal: read(view.evidence, c.signal).value})) for c in conditions
    ]
    held = [c for c, holds in results if holds]
    unknown = [c for c in conditions if view.seen[c.signal] is None]
    share = (len(held) + len(unknown) / 2) / len(conditions)
    return Answer(
        4 * share,
        f"{len(held)} of {len(conditions)} conditions hold ({_listed(held)}); not readable yet: {_listed(unknown)}.",
    )


def operator_match(view: EntryView) -> Answer:
    kinds = view.option.operators
    if "any" in kinds:
        return Answer(2, "It suits any operator.")
    share = min(1.0, sum(view.number(f"{kind}_share") for kind in kinds))
    return Answer(4 * share, f"Its operators ({', '.join(kinds)}) take {share:.0%} of the reference's time.")


def direction_match(view: EntryView) -> Answer:
    decided = view.evidence.direction
    view.quote("decisions_in_run", None if decided is None else decided.value)
    if decided is None:
        raise Missing("no direction has been decided")
    if view.option.direction is decided:
        return Answer(4, f"It belongs to {decided}.")
    if view.option.direction is None:
        return Answer(4, "It uses what the decided space was chosen for, whatever the direction.")
    return Answer(0, f"It belongs to {view.option.direction}, not to {decided}.")


def effort(view: EntryView) -> Answer:
    view.quote("entry", {"cost": view.option.cost})
    return Answer({"low": 4, "medium": 2.5, "high": 1}[view.option.cost], f"Effort and risk are {view.option.cost}.")


def novelty(view: EntryView) -> Answer:
    used = view.evidence.used_entries.count(view.option.id)
    view.quote("decisions_in_run", {"strategies_with_this_entry": used})
    return Answer(4 if used == 0 else 1 if used == 1 else 0, f"Used by {used} earlier strategies of this run.")


STRATEGY_CRITERIA: Mapping[str, Scorer[Entry]] = MappingProxyType(
    {
        "signature_match": signature_match,
        "operator_match": operator_match,
        "direction_match": direction_match,
        "effort": effort,
        "novelty": novelty,
    }
)


def _listed(conditions: Sequence[object]) -> str:
    return ", ".join(str(c) for c in conditions) or "none"
