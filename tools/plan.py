"""hiera_plan_space, hiera_plan_direction, hiera_plan_strategy: see the evidence, or record a choice."""

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

from pydantic import Field

from hiera_mcp.deps import Deps
from hiera_mcp.errors import RequestError
from hiera_mcp.model.base import Model
from hiera_mcp.model.knowledge import Match
from hiera_mcp.model.plan import Decision, DecisionKind, Knowledge, OptionScore, Strategy
from hiera_mcp.model.space import Direction
from hiera_mcp.planning import decide as planner
from hiera_mcp.planning.brief import render_brief
from hiera_mcp.planning.decide import Proposal, StrategyProposal
from hiera_mcp.planning.evidence import Evidence
from hiera_mcp.store import RecordedDecision
from hiera_mcp.tools.base import ADDS, Ctx, Reason, RunId, Tool, deps_of
from hiera_mcp.tools.evidence import evidence_of, matching_entries, planned_round
from hiera_mcp.tools.run_state import RunState, load_run

MAX_STRATEGY = 16_000
"""Characters of a strategy as JSON."""
MOST_TECHNIQUES = 3

Choice = Annotated[
    str | None,
    Field(description="An option, or `recommended`. Leave it out to see the evidence first; nothing is recorded then."),
]


class PlanView(Model):
    """Evidence and recommendation, and the decision if one was recorded."""

    run_id: str
    round: int
    """The round that is being planned."""
    kind: DecisionKind
    options: tuple[OptionScore, ...]
    """Each with its criteria: weight, score 0 to 4, explanation, evidence; and the gates that forbid it."""
    recommended: str
    recorded: bool
    decision_id: str | None
    choice: str | None
    decided_by: Literal["agent", "server"] | None
    reason: str
    """Of the decision, or of the recommendation when nothing was recorded."""
    knowledge: tuple[Knowledge, ...]
    """Expert entries that fit; read them at hiera://knowledge/{slug}."""
    next_step: str


class StrategyView(PlanView):
    """The same for strategies."""

    strategy: Strategy | None
    """The recorded one."""
    techniques: tuple[Strategy, ...]
    """Proposals to adapt, the best first."""
    brief: str
    """What the writer of the next candidates must know; empty until a strategy is recorded."""


async def hiera_plan_space(run_id: RunId, ctx: Ctx, choice: Choice = None, reason: Reason = "") -> PlanView:
    """SSDA, first half: choose the implementation space of the round.

    Spaces are nested: cuda < cuda_libraries < cuda_libraries_pytorch (cpp < … on cpu). Candidates may use nothing
    outside the chosen one. Call it without choice to see scores, evidence, gates and the recommendation; call it with
    choice to record. A gated space cannot be chosen; another than the recommended one needs a reason. The first
    decision after a round's candidates opens the next round. Next: hiera_plan_direction.
    """
    return await _plan(ctx, run_id, "space", choice, reason, planner.plan_space)


async def hiera_plan_direction(run_id: RunId, ctx: Ctx, choice: Choice = None, reason: Reason = "") -> PlanView:
    """SSDA, second half: choose the optimisation direction of the round.

    Directions: control_flow, parallelism, memory_transactions, reuse_pipelining, tensor_core_instructions. Needs a
    space. Call it without choice to see scores from contract, profile and past rounds; call it with choice to record.
    A gated direction cannot be chosen; another than the recommended one needs a reason.
    Profile the best candidate first: without a profile fewer criteria can be scored. Next: hiera_plan_strategy.
    """
    return await _plan(ctx, run_id, "direction", choice, reason, planner.plan_direction)


async def hiera_plan_strategy(
    run_id: RunId,
    ctx: Ctx,
    strategy: Annotated[Strategy | None, Field(description="Your own; start from one of `techniques`.")] = None,
    choice: Annotated[
        Literal["recommended"] | None, Field(description="Record the server's proposal instead of your own.")
    ] = None,
    reason: Reason = "",
) -> StrategyView:
    """SPA: turn the direction into concrete steps, constraints and numbers.

    Needs a space and a direction. Call it without strategy and choice to see techniques from the knowledge base; then
    record your own strategy (same space and direction, steps for this very code, the metric that should move), or the
    proposal with choice="recommended". Returns the brief for writing candidates once recorded.
    Next: write up to six different candidates and call hiera_candidates_evaluate.
    """
    if strategy is not None and choice is not None:
        raise RequestError("Pass either `strategy` or `choice`, not both.")
    check_length(strategy)
    deps = deps_of(ctx)
    state = await deps.database(lambda s: load_run(s, run_id))
    evidence = await evidence_of(deps, state)
    proposal = planner.plan_strategy(evidence, matching_entries(deps, evidence, evidence.direction))
    recorded: RecordedDecision | None = None
    if strategy is not None or choice is not None:
        decision = planner.decide_strategy(proposal, strategy, evidence, reason)
        state, recorded = await _record(deps, run_id, decision)
    return _strategy_view(state, evidence, proposal, recorded)


def check_length(strategy: Strategy | None) -> None:
    """Refuse a strategy that no brief could hold."""
    length = len(strategy.model_dump_json()) if strategy else 0
    if length > MAX_STRATEGY:
        raise RequestError(
            f"The strategy has {length} characters of JSON; at most {MAX_STRATEGY} are taken.",
            todo="Say each step in a sentence; sources belong into the candidates.",
        )


async def _plan(
    ctx: Ctx,
    run_id: str,
    kind: Literal["space", "direction"],
    choice: str | None,
    reason: str,
    propose: Callable[..., Proposal],
) -> PlanView:
    deps = deps_of(ctx)
    state = await deps.database(lambda s: load_run(s, run_id))
    if kind == "direction" and state.run.space is None:
        raise RequestError("The run has no space yet.", todo=f"Call hiera_plan_space(run_id='{run_id}') first.")
    evidence = await evidence_of(deps, state)
    proposal = propose(evidence, matching_entries(deps, evidence, None))
    if kind == "direction":
        proposal = planner.expanded(proposal, _techniques(deps, evidence, proposal))
    if choice is None:
        return _view(state, proposal, None)
    decision = planner.decide(proposal, choice, reason)
    state, recorded = await _record(deps, run_id, decision)
    return _view(state, proposal, recorded)


def _techniques(deps: Deps, evidence: Evidence, proposal: Proposal) -> dict[str, Sequence[Match]]:
    """The best entries of each leading direction."""
    names = planner.leading(proposal)
    found = {name: matching_entries(deps, evidence, Direction(name)) for name in names}
    return {
        name: [m for m in matches if m.entry.direction == name][:MOST_TECHNIQUES] for name, matches in found.items()
    }


async def _record(deps: Deps, run_id: str, decision: Decision) -> tuple[RunState, RecordedDecision]:
    recorded = await deps.database(lambda s: s.add_decision(run_id, decision))
    return await deps.database(lambda s: load_run(s, run_id)), recorded


def _strategy_view(
    state: RunState, evidence: Evidence, proposal: StrategyProposal, recorded: RecordedDecision | None
) -> StrategyView:
    strategy = recorded.decision.strategy if recorded else None
    brief = render_brief(state.contract, evidence, strategy, state.left_in_round) if strategy else ""
    view = _view(state, proposal, recorded)
    return StrategyView(**dict(view), strategy=strategy, techniques=proposal.techniques, brief=brief)


def _view(state: RunState, proposal: Proposal, recorded: RecordedDecision | None) -> PlanView:
    shown = PlanView(
        run_id=state.run.id,
        round=planned_round(state),
        kind=proposal.kind,
        options=proposal.options,
        recommended=proposal.recommended,
        recorded=False,
        decision_id=None,
        choice=None,
        decided_by=None,
        reason=proposal.why,
        knowledge=proposal.knowledge,
        next_step=_how_to_record(state, proposal),
    )
    return shown if recorded is None else shown.model_copy(update=_decided(state, recorded))


def _decided(state: RunState, recorded: RecordedDecision) -> dict[str, object]:
    d = recorded.decision
    return {
        "round": recorded.round,
        "options": d.options,
        "recorded": True,
        "decision_id": recorded.id,
        "choice": d.choice,
        "decided_by": d.decided_by,
        "reason": d.reason,
        "next_step": state.next_step,
    }


def _how_to_record(state: RunState, proposal: Proposal) -> str:
    call = f"hiera_plan_{proposal.kind}(run_id='{state.run.id}'"
    own = "strategy={...}, reason=" if proposal.kind == "strategy" else "choice=..., reason="
    return f"Nothing is recorded yet: {call}, choice='recommended') takes `{proposal.recommended}`; {call}, {own}...) yours."


SPACE = Tool(hiera_plan_space, "Choose the space", ADDS)
DIRECTION = Tool(hiera_plan_direction, "Choose the direction", ADDS)
STRATEGY = Tool(hiera_plan_strategy, "Plan the strategy", ADDS)
