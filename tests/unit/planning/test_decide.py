"""From a proposal and a choice to a decision."""

from collections.abc import Callable
from typing import Any

import pytest

from hiera_mcp.errors import GateError, RequestError
from hiera_mcp.model.knowledge import Condition, Entry, Match, Reference
from hiera_mcp.model.plan import Strategy
from hiera_mcp.model.profile import Metric, Profile
from hiera_mcp.model.space import Direction, Space
from hiera_mcp.planning.decide import (
    decide,
    decide_strategy,
    expanded,
    leading,
    plan_direction,
    plan_space,
    plan_strategy,
)
from hiera_mcp.planning.evidence import Evidence, Outcome


@pytest.fixture
def decided(evidence: Callable[..., Evidence]) -> Evidence:
    return evidence(space=Space.CUDA, direction=Direction.MEMORY_TRANSACTIONS)


def entry(slug: str = "wide-loads", **changes: object) -> Match:
    values = {
        "id": slug,
        "title": slug.replace("-", " "),
        "direction": "memory_transactions",
        "spaces": ["cuda"],
        "archs": ["cuda"],
        "operators": ["elementwise"],
        "signature": [Condition(signal="platform", op="==", value="cuda")],
        "steps": ["Load float4."],
        "must_move": "wide_load_share",
        "expected": "rises",
        "cost": "low",
        "sources": [Reference(title="t", url="https://example.org")],
    }
    return Match(entry=Entry.model_validate({**values, **changes}), score=1, why="holds: platform == cuda")


def own(**changes: object) -> Strategy:
    values = {"title": "my own", "space": "cuda", "direction": "memory_transactions", "steps": ["Load float4."]}
    return Strategy.model_validate({**values, **changes})


def test_the_recommendation_is_recorded_as_the_servers(evidence: Callable[..., Evidence]) -> None:
    proposal = plan_space(evidence(), [entry()])
    decision = decide(proposal, "recommended")
    assert (decision.choice, decision.decided_by, decision.rubric_version) == ("cuda", "server", "space/3")
    assert decision.reason == proposal.why
    assert [k.slug for k in decision.knowledge] == ["wide-loads"]


def test_naming_the_recommended_option_needs_no_reason_and_is_the_agents(evidence: Callable[..., Evidence]) -> None:
    decision = decide(plan_space(evidence()), "cuda")
    assert (decision.decided_by, bool(decision.reason)) == ("agent", True)


def test_another_option_needs_a_reason_and_stores_it_with_the_option(evidence: Callable[..., Evidence]) -> None:
    proposal = plan_space(evidence())
    with pytest.raises(RequestError, match="differs from the recommendation"):
        decide(proposal, "cuda_libraries", reason="  ")
    decision = decide(proposal, "cuda_libraries", reason="CUB does it")
    assert [o.overruled for o in decision.options] == ["", "CUB does it", ""]


def test_an_unknown_option_is_refused_with_the_valid_ones(evidence: Callable[..., Evidence]) -> None:
    with pytest.raises(RequestError) as caught:
        decide(plan_direction(evidence()), "faster_please", reason="r")
    assert caught.value.valid == (*Direction, "recommended")


def test_a_direction_that_lost_twice_needs_a_reason_even_when_it_is_all_that_is_left(
    evidence: Callable[..., Evidence], outcome: Callable[..., Outcome]
) -> None:
    lost = [outcome(f"{d}{r}", status="wrong_output", round=r, direction=d) for d in Direction for r in (1, 2)]
    proposal = plan_direction(evidence(lost))
    assert proposal.recommended in proposal.reason_required
    with pytest.raises(RequestError, match="repeated_loser"):
        decide(proposal, proposal.recommended)
    assert decide(proposal, proposal.recommended, reason="a new idea").reason == "a new idea"
    assert "lost as well" in decide(proposal, "recommended").reason


def test_the_leading_directions_are_expanded_and_forbidden_ones_are_not(evidence: Callable[..., Evidence]) -> None:
    proposal = plan_direction(evidence(work=(("gemm", 1.0, 1),), intensity=600))
    names = leading(proposal)
    assert names[0] == proposal.recommended and len(names) == 2
    assert "tensor_core_instructions" not in names  # not legal here
    shown = expanded(proposal, {names[0]: [entry()]})
    assert {o.option: o.techniques for o in shown.options if o.techniques} == {names[0]: ("wide-loads: wide loads",)}
    assert decide(shown, "recommended").options == shown.options


def test_a_strategy_cannot_be_planned_before_space_and_direction(evidence: Callable[..., Evidence]) -> None:
    for e in (evidence(), evidence(space=Space.CUDA)):
        with pytest.raises(RequestError, match="needs a space and a direction"):
            plan_strategy(e, [entry()])


def test_techniques_are_templates_of_the_best_entries(decided: Evidence) -> None:
    proposal = plan_strategy(decided, [entry("far-off", direction="control_flow"), entry()])
    assert [t.knowledge for t in proposal.techniques] == [("wide-loads",), ("far-off",)]
    assert proposal.recommended_strategy.predicted_metric == "wide_load_share"
    assert proposal.recommended_strategy.direction is Direction.MEMORY_TRANSACTIONS


def test_entries_for_other_targets_and_larger_spaces_are_shown_with_their_gate_but_never_proposed(
    decided: Evidence,
) -> None:
    proposal = plan_strategy(
        decided, [entry("hopper", archs=["sm_90a"]), entry("lib", spaces=["cuda_libraries"]), entry()]
    )
    assert [t.knowledge for t in proposal.techniques] == [("wide-loads",)]
    assert [o.gates[0].partition(":")[0] if o.gates else "" for o in proposal.options] == [
        "entry_arch",
        "entry_space",
        "",
    ]


def test_an_entry_whose_library_the_host_lacks_is_not_proposed(evidence: Callable[..., Evidence]) -> None:
    decided: dict[str, Any] = {"space": Space.CUDA_LIBRARIES, "direction": Direction.MEMORY_TRANSACTIONS}
    needy = entry("needy", libraries=["cudnn"])
    without = plan_strategy(evidence(**decided, libraries=["cublas"]), [needy])
    assert without.options[0].gates == ("entry_library: needy needs cudnn, which this host does not have",)
    for libraries in (["cudnn"], None):
        assert plan_strategy(evidence(**decided, libraries=libraries), [needy]).recommended == "needy"


def test_an_entry_used_before_ranks_below_a_fresh_one(evidence: Callable[..., Evidence]) -> None:
    e = evidence(space=Space.CUDA, direction=Direction.MEMORY_TRANSACTIONS, used_entries=["wide-loads"])
    assert plan_strategy(e, [entry(), entry("fresh-idea")]).recommended == "fresh idea"


def test_without_any_entry_the_strategy_is_a_plain_one(decided: Evidence) -> None:
    proposal = plan_strategy(decided, [])
    assert decide_strategy(proposal, None, decided).choice == "Plain memory transactions"


def test_the_recommended_strategy_is_recorded_as_the_servers(decided: Evidence) -> None:
    decision = decide_strategy(plan_strategy(decided, [entry()]), None, decided)
    assert (decision.kind, decision.choice, decision.decided_by) == ("strategy", "wide loads", "server")
    assert decision.strategy is not None and decision.strategy.steps == ("Load float4.",)


def test_an_own_strategy_needs_a_reason(decided: Evidence) -> None:
    proposal = plan_strategy(decided, [entry()])
    with pytest.raises(RequestError, match="Pass `reason`"):
        decide_strategy(proposal, own(), decided)
    decision = decide_strategy(proposal, own(), decided, reason="rows are aligned")
    assert (decision.choice, decision.decided_by, decision.recommended) == ("my own", "agent", "wide loads")


@pytest.mark.parametrize(
    "changes", [{"space": "cuda_libraries"}, {"direction": "control_flow"}], ids=["space", "direction"]
)
def test_a_strategy_outside_the_decision_is_refused(changes: dict[str, Any], decided: Evidence) -> None:
    with pytest.raises(RequestError, match="the run decided otherwise"):
        decide_strategy(plan_strategy(decided, []), own(**changes), decided, reason="r")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"steps": ["Feed wgmma from shared memory."]}, "wgmma needs sm_90a"),
        ({"steps": ["Copy tiles by TMA."]}, "need sm_90"),
        ({"steps": ["Call cublasLtMatmul."]}, "allows none"),
        ({"steps": ["Use torch.relu."]}, "does not allow it"),
        ({"parameters": {"threads_per_block": 2048}}, "above the limit"),
    ],
)
def test_a_strategy_that_is_not_legal_is_refused_with_the_reason(
    changes: dict[str, Any], says: str, decided: Evidence
) -> None:
    with pytest.raises(GateError, match=says):
        decide_strategy(plan_strategy(decided, []), own(**changes), decided, reason="r")


@pytest.mark.parametrize(
    ("metric", "change", "says"),
    [
        ("moon_phase", "-30 %", "nothing measures 'moon_phase'"),
        ("dram__throughput.avg.pct_of_peak_sustained_elapsed", "rises", "Valid: time"),
        ("time", "it gets better", "does not begin with a change"),
    ],
)
def test_a_prediction_that_could_never_be_checked_is_refused(
    metric: str, change: str, says: str, decided: Evidence
) -> None:
    strategy = own(predicted_metric=metric, predicted_change=change)
    with pytest.raises(RequestError, match=says):
        decide_strategy(plan_strategy(decided, []), strategy, decided, reason="r")


def test_a_metric_of_the_best_profile_may_be_predicted(evidence: Callable[..., Evidence]) -> None:
    metric = Metric(name="ncu_sectors_per_load", value=9.0, unit="", origin="counter")
    profile = Profile(bottleneck="memory", summary="s", metrics=(metric,))
    e = evidence(space=Space.CUDA, direction=Direction.MEMORY_TRANSACTIONS, profile=profile)
    for name in ("ncu_sectors_per_load", "sectors_per_load"):
        strategy = own(predicted_metric=name, predicted_change="falls to 4")
        assert decide_strategy(plan_strategy(e, []), strategy, e, reason="r").strategy == strategy


def test_every_template_says_what_must_not_change_and_which_way_its_metric_goes(decided: Evidence) -> None:
    strategy = plan_strategy(decided, [entry()]).recommended_strategy
    assert "results within the contract's tolerance stay" in " ".join(strategy.constraints)
    assert "1024 threads a block" in " ".join(strategy.constraints)
    assert strategy.predicted_change == "rises: rises"


def test_a_constraint_may_name_what_it_forbids(decided: Evidence) -> None:
    strategy = own(constraints=["No wgmma and no cublas."])
    assert decide_strategy(plan_strategy(decided, []), strategy, decided, reason="r").strategy == strategy


def test_cuda_constructs_are_refused_on_cpu(evidence: Callable[..., Evidence]) -> None:
    e = evidence(target="cpu", space=Space.CPP, direction=Direction.PARALLELISM)
    strategy = own(space="cpp", direction="parallelism", steps=["Reduce by __shfl_xor_sync."])
    with pytest.raises(GateError, match="do not exist on cpu"):
        decide_strategy(plan_strategy(e, []), strategy, e, reason="r")
