"""What an ablation switches off is off: in proposals, strategies, the brief and the next step."""

from collections.abc import Callable

import pytest

from hiera_mcp.errors import GateError, RequestError
from hiera_mcp.model.contract import Contract
from hiera_mcp.model.plan import Strategy
from hiera_mcp.model.space import Direction, Space
from hiera_mcp.model.switches import Switches, switches_of
from hiera_mcp.planning.brief import render_brief
from hiera_mcp.planning.decide import decide, decide_strategy, plan_direction, plan_space, plan_strategy
from hiera_mcp.planning.evidence import Evidence, gather
from hiera_mcp.planning.next_step import RunState, next_step

ALL = ("fixed-space=cuda", "no-directions", "no-contract-files", "no-memory")


@pytest.mark.parametrize("words", [(), *((word,) for word in ALL), ALL])
def test_words_and_switches_say_the_same(words: tuple[str, ...]) -> None:
    assert switches_of(words).words == words


@pytest.mark.parametrize("words", [["no-space"], ["fixed-space=rust"], ["fixed-space=cuda", "fixed-space=cpp"]])
def test_words_that_switch_nothing_off_are_refused(words: list[str]) -> None:
    with pytest.raises(RequestError):
        switches_of(words)


def test_a_fixed_space_is_recommended_and_no_other_can_be_chosen(evidence: Callable[..., Evidence]) -> None:
    contraction = {"work": (("gemm", 1.0, 1),), "intensity": 600}
    assert plan_space(evidence(**contraction)).recommended != "cuda"
    proposal = plan_space(evidence(**contraction, switches=Switches(fixed_space=Space.CUDA)))
    assert proposal.recommended == "cuda"
    with pytest.raises(GateError, match="fixed_space"):
        decide(proposal, "cuda_libraries", reason="I insist")


def test_without_directions_none_is_planned_and_a_strategy_has_none(evidence: Callable[..., Evidence]) -> None:
    e = evidence(space=Space.CUDA, switches=Switches(directions=False))
    with pytest.raises(RequestError, match="no-directions"):
        plan_direction(e)
    decision = decide_strategy(plan_strategy(e, []), None, e)
    assert decision.strategy is not None and decision.strategy.direction is None
    own = Strategy(title="mine", space=Space.CUDA, direction=Direction.PARALLELISM, steps=("Do.",))
    with pytest.raises(RequestError, match="decides no direction"):
        decide_strategy(plan_strategy(e, []), own, e, reason="r")


def test_without_contract_files_the_brief_keeps_space_and_binding_alone(contract: Callable[..., Contract]) -> None:
    c = contract().model_copy(update={"notes": ("Train mode is off.",)})
    strategy = Strategy(title="mine", space=Space.CUDA, direction=Direction.PARALLELISM, steps=("Do.",))
    whole = render_brief(c, gather(c), strategy, left=6)
    bare = render_brief(c, gather(c, switches=Switches(contract_files=False)), strategy, left=6)
    for rule in ("Train mode is off.", "rtol"):
        assert rule in whole and rule not in bare
    for kept in ("anything outside it is refused", "hiera_run("):
        assert kept in bare


def state(**changes: object) -> RunState:
    values = {"run_id": "r", "round": 1, "rounds": 2, "candidates_per_round": 6, "candidates_left": 6}
    return RunState.model_validate({**values, **changes})


@pytest.mark.parametrize(
    ("skipped", "first", "second"),
    [((), "space", "direction"), (("space",), "direction", "strategy"), (("space", "direction"), "strategy", None)],
)
def test_the_next_step_never_asks_for_what_is_not_decided(
    skipped: tuple[str, ...], first: str, second: str | None
) -> None:
    assert f"hiera_plan_{first}(" in next_step(state(skipped=skipped))
    after = next_step(state(skipped=skipped, decided=(first,)))
    assert (f"hiera_plan_{second}(" if second else "hiera_candidates_evaluate(") in after
    opened = next_step(state(skipped=skipped, candidates_left=2, best_candidate_id="k", best_profiled=True))
    assert f"hiera_plan_{first}(" in opened
