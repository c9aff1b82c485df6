"""From evidence to a proposal, and from a proposal and a choice to a decision that can be recorded."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from hiera_mcp.errors import GateError, RequestError
from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.knowledge import Match
from hiera_mcp.model.plan import Decision, DecisionKind, Knowledge, OptionScore, Strategy
from hiera_mcp.model.space import Direction
from hiera_mcp.model.switches import NO_DIRECTIONS
from hiera_mcp.planning.direction import score_directions
from hiera_mcp.planning.evidence import Evidence
from hiera_mcp.planning.gates import reasons_required
from hiera_mcp.planning.legality import decided_space, validate_strategy
from hiera_mcp.planning.rubrics import Rubric, load_rubric
from hiera_mcp.planning.space import score_spaces
from hiera_mcp.planning.strategy import score_entries, standing, template

RECOMMENDED = "recommended"
"""The choice that stands for the server's own recommendation."""
SHOWN_TECHNIQUES = 3
EXPANDED = 2
"""So many directions are shown with their techniques."""


class Proposal(Model):
    """What the planner shows before a decision: every option with its scores, and one recommendation."""

    kind: DecisionKind
    options: tuple[OptionScore, ...]
    recommended: Text
    """The option with the greatest total among those that no gate forbids and no rule questions."""
    why: Text
    """The recommendation in one sentence."""
    reason_required: dict[str, str] = Field(default_factory=dict)
    """Option → the rule that asks for a reason, even when the option is the recommended one."""
    knowledge: tuple[Knowledge, ...] = ()
    rubric_version: Text

    def option(self, name: str) -> OptionScore:
        """Raises RequestError when there is no such option."""
        for option in self.options:
            if option.option == name:
                return option
        raise RequestError(
            f"{name!r} is not a {self.kind} that can be chosen.", valid=[*(o.option for o in self.options), RECOMMENDED]
        )


class StrategyProposal(Proposal):
    """SPA's proposal. Its options are knowledge entries; `recommended` is the title of `recommended_strategy`."""

    techniques: tuple[Strategy, ...] = Field(min_length=1)
    """Templates from the best entries, the best first."""

    @property
    def recommended_strategy(self) -> Strategy:
        return self.techniques[0]


def plan_space(evidence: Evidence, entries: Sequence[Match] = (), rubric: Rubric | None = None) -> Proposal:
    """Score the three spaces; works at the first step, with no candidate and no profile."""
    rubric = rubric or load_rubric("space")
    return _proposal("space", score_spaces(evidence, rubric), {}, entries, rubric)


def plan_direction(evidence: Evidence, entries: Sequence[Match] = (), rubric: Rubric | None = None) -> Proposal:
    """Score the five directions for the space decided last. Raises RequestError in a run that decides none."""
    if not evidence.switches.directions:
        raise RequestError(
            f"This run decides no direction: it was started with {NO_DIRECTIONS}.", todo="Call hiera_plan_strategy."
        )
    rubric = rubric or load_rubric("direction")
    rules = {d.value: "; ".join(texts) for d in Direction if (texts := reasons_required(evidence, d))}
    return _proposal("direction", score_directions(evidence, rubric), rules, entries, rubric)


def leading(proposal: Proposal) -> tuple[str, ...]:
    """The options that are worth expanding: the recommended one, and the next ones by total that no gate forbids."""
    others = (o for o in proposal.options if not o.gates and o.option != proposal.recommended)
    return (proposal.recommended, *(o.option for o in sorted(others, key=lambda o: -o.total)))[:EXPANDED]


def expanded(proposal: Proposal, techniques: Mapping[str, Sequence[Match]]) -> Proposal:
    """The proposal with the techniques that each of its leading options would be carried out by."""
    shown = {name: tuple(f"{m.entry.id}: {m.entry.title}" for m in found) for name, found in techniques.items()}
    options = tuple(o.model_copy(update={"techniques": shown.get(o.option, ())}) for o in proposal.options)
    return proposal.model_copy(update={"options": options})


def plan_strategy(evidence: Evidence, entries: Sequence[Match], rubric: Rubric | None = None) -> StrategyProposal:
    """The best-matching techniques as strategies. Raises RequestError before space and direction are decided."""
    rubric = rubric or load_rubric("strategy")
    scores = score_entries(evidence, entries, rubric)
    allowed = [(score, match.entry) for score, match in zip(scores, entries, strict=True) if not score.gates]
    ranked = sorted(allowed, key=lambda pair: -pair[0].total)[:SHOWN_TECHNIQUES]
    techniques = tuple(template(entry, evidence) for _, entry in ranked) or (_without_knowledge(evidence),)
    return StrategyProposal(
        kind="strategy",
        options=scores,
        recommended=techniques[0].title,
        why=_why(ranked[0][0]) if ranked else "No knowledge entry fits, so the strategy is a plain one.",
        knowledge=_knowledge(entries),
        rubric_version=rubric.label,
        techniques=techniques,
    )


def decide(proposal: Proposal, choice: str, reason: str = "", by: Literal["agent", "server"] = "agent") -> Decision:
    """The decision for a space or a direction.

    `choice` is an option's name, or `recommended`. Raises RequestError for an unknown option or a missing reason, and
    GateError, which names the gate, for a forbidden one.
    """
    if choice == RECOMMENDED:
        choice, by, reason = proposal.recommended, "server", reason or proposal.why
    option = proposal.option(choice)
    if option.gates:
        raise GateError(
            f"{choice} is forbidden by the gate {option.gates[0]}.",
            todo="Choose another one.",
            valid=[o.option for o in proposal.options if not o.gates],
        )
    differs = choice != proposal.recommended
    _require_reason(proposal, choice, reason, differs)
    why = reason or proposal.why
    return _decision(proposal, _overruled(proposal.options, choice, why if differs else ""), choice, by, why, None)


def decide_strategy(
    proposal: StrategyProposal,
    strategy: Strategy | None,
    evidence: Evidence,
    reason: str = "",
    by: Literal["agent", "server"] = "agent",
) -> Decision:
    """The decision for a strategy: the agent's own, or with None the recommended one.

    Raises RequestError when it lies outside the decided space or direction or is not legal on the target, and when an
    own strategy comes without a reason.
    """
    if strategy is None:
        strategy, by, reason = proposal.recommended_strategy, "server", reason or proposal.why
    validate_strategy(strategy, evidence)
    differs = strategy.title != proposal.recommended
    _require_reason(proposal, strategy.title, reason, differs)
    return _decision(proposal, proposal.options, strategy.title, by, reason or proposal.why, strategy)


def _require_reason(proposal: Proposal, choice: str, reason: str, differs: bool) -> None:
    if reason.strip():
        return
    rule = proposal.reason_required.get(choice)
    if rule is not None:
        raise RequestError(f"{choice} needs a reason ({rule}).", todo="Pass `reason`, or choose another one.")
    if differs:
        raise RequestError(
            f"{choice!r} differs from the recommendation ({proposal.recommended!r}: {proposal.why}).",
            todo='Pass `reason`, or choice="recommended".',
        )


def _decision(
    proposal: Proposal,
    options: tuple[OptionScore, ...],
    choice: str,
    by: Literal["agent", "server"],
    reason: str,
    strategy: Strategy | None,
) -> Decision:
    return Decision(
        kind=proposal.kind,
        options=options,
        recommended=proposal.recommended,
        choice=choice,
        decided_by=by,
        reason=reason,
        knowledge=proposal.knowledge,
        strategy=strategy,
        rubric_version=proposal.rubric_version,
    )


def _overruled(options: tuple[OptionScore, ...], choice: str, reason: str) -> tuple[OptionScore, ...]:
    return tuple(o.model_copy(update={"overruled": reason}) if o.option == choice and reason else o for o in options)


def _proposal(
    kind: DecisionKind,
    options: tuple[OptionScore, ...],
    rules: dict[str, str],
    entries: Sequence[Match],
    rubric: Rubric,
) -> Proposal:
    best = _recommended(options, rules)
    why = _why(best)
    if best.option in rules:
        why += f" Every other allowed option lost as well; {rules[best.option]}."
    return Proposal(
        kind=kind,
        options=options,
        recommended=best.option,
        why=why,
        reason_required=rules,
        knowledge=_knowledge(entries),
        rubric_version=rubric.label,
    )


def _recommended(options: Sequence[OptionScore], rules: dict[str, str]) -> OptionScore:
    """The greatest total; among equals the first. Options that a rule questions only when nothing else is left."""
    allowed = [o for o in options if not o.gates]
    return max([o for o in allowed if o.option not in rules] or allowed, key=lambda o: o.total)


def _why(option: OptionScore) -> str:
    strongest = sorted((c for c in option.criteria if c.score), key=lambda c: -c.weight * (c.score or 0))[:2]
    return f"{option.option} scores {option.total:.2f} of 4. " + " ".join(c.explanation for c in strongest)


def _knowledge(entries: Sequence[Match]) -> tuple[Knowledge, ...]:
    return tuple(Knowledge(slug=m.entry.id, title=m.entry.title, why=m.why) for m in entries)


def _without_knowledge(evidence: Evidence) -> Strategy:
    """What remains when no entry fits: the direction itself, measured step by step."""
    direction = evidence.direction
    return Strategy(
        title=f"Plain {direction.value.replace('_', ' ')}" if direction else "One change at a time",
        space=decided_space(evidence),
        direction=direction,
        steps=(
            "Start from the best parent, or from the contract's skeleton when there is none.",
            f"Change one thing{' that belongs to this direction' if direction else ''}, and keep everything else.",
            "Measure, and keep the change only when the comparison with the parent says faster.",
        ),
        constraints=standing(evidence),
        predicted_metric="time",
        predicted_change="falls",
    )
