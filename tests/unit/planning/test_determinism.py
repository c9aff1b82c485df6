"""The same inputs give the same scores, for any workload and any run; and some things hold for all of them."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planning_values import make_contract, make_dataflow, make_outcome

from hiera_mcp.model.profile import Metric, Occupancy, Profile
from hiera_mcp.model.space import Direction, spaces_of
from hiera_mcp.planning.decide import Proposal, decide, plan_direction, plan_space, plan_strategy
from hiera_mcp.planning.evidence import Evidence, gather

KINDS = ("gemm", "conv", "attention", "reduction", "normalisation", "elementwise", "movement", "scan", "other")
STATUSES = ("passed", "wrong_output", "crash", "pending", "not_run")
SOURCES = ("int x;", "float4 v;", "__shared__ float t[8];", 'asm("wgmma.fence");', "#pragma omp parallel for simd")

shares = st.floats(0, 1)
positive = st.floats(1e-3, 1e6)


@st.composite
def workloads(draw: st.DrawFn) -> dict[str, Any]:
    rows = draw(st.lists(st.tuples(st.sampled_from(KINDS), shares, st.integers(1, 60)), min_size=1, max_size=5))
    total = sum(share for _, share, _ in rows) or 1.0
    chains = draw(st.lists(st.tuples(st.integers(2, 9), st.integers(1, 9), st.floats(0, 0.3)), max_size=3))
    return {
        "target": draw(st.sampled_from(("cpu", "cuda:sm_80", "cuda:sm_90a"))),
        "work": tuple((kind, share / total, n) for kind, share, n in rows),
        "fusion": draw(st.floats(1, 20)),
        "intensity": draw(positive),
        "tensor_cores": draw(st.booleans()),
        "parameters": draw(st.integers(0, 300)),
        "seconds": draw(st.floats(1e-7, 1.0)),
        "dataflow": draw(
            st.none()
            | st.builds(
                make_dataflow,
                depth=st.integers(0, 200),
                chains=st.just(chains),
                longest=st.integers(0, 1 << 30),
                covered=shares,
            )
        ),
    }


@st.composite
def outcomes(draw: st.DrawFn, target: str) -> list[Any]:
    made: list[Any] = []
    for n in range(draw(st.integers(0, 5))):
        status = draw(st.sampled_from(STATUSES))
        speedup = draw(st.floats(0.1, 50)) if status == "passed" else None
        made.append(
            make_outcome(
                f"c{n}",
                speedup,
                status=status,
                round=draw(st.integers(1, 3)),
                space=draw(st.sampled_from(spaces_of(target))),
                direction=draw(st.sampled_from(Direction)),
                floor_ratio=None if speedup is None else draw(st.floats(0.9, 90)),
                sources={"a.cu": draw(st.sampled_from(SOURCES))},
            )
        )
    return made


@st.composite
def profiles(draw: st.DrawFn) -> Profile | None:
    if draw(st.booleans()):
        return None
    values = draw(st.dictionaries(st.sampled_from(("ncu_tma_loads", "ncu_dram_pct", "ncu_waves")), st.floats(0, 100)))
    return Profile.model_validate(
        {
            "bottleneck": draw(st.sampled_from(("memory", "compute", "latency", "launch", "unknown"))),
            "summary": "s",
            "metrics": [Metric(name=n, value=v, unit="", origin="counter") for n, v in values.items()],
            "occupancy": [Occupancy(kernel="k", block_threads=128, percent=draw(st.floats(1, 100)), limiter="none")],
            "instruction_mix": {"load": draw(st.integers(0, 9)), "branch": draw(st.integers(0, 9)), "fma": 3},
        }
    )


@st.composite
def situations(draw: st.DrawFn) -> Evidence:
    work = draw(workloads())
    space = spaces_of(work["target"])[draw(st.integers(0, 2))]
    return gather(
        make_contract(**work),
        draw(outcomes(work["target"])),
        round=draw(st.integers(1, 4)),
        space=space,
        direction=draw(st.sampled_from(Direction)),
        profile=draw(profiles()),
        libraries=draw(st.none() | st.just(()) | st.just(("cublas", "blas"))),
    )


def proposals(evidence: Evidence) -> tuple[Proposal, Proposal, Proposal]:
    return plan_space(evidence), plan_direction(evidence), plan_strategy(evidence, [])


MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@MANY
@given(situations())
def test_the_same_inputs_give_the_same_scores(evidence: Evidence) -> None:
    again = Evidence.model_validate_json(evidence.model_dump_json())
    assert proposals(evidence) == proposals(again) == proposals(evidence)


@MANY
@given(situations(), st.randoms(use_true_random=False))
def test_the_order_of_operators_does_not_matter(evidence: Evidence, random: Any) -> None:
    shuffled = list(evidence.features.operators)
    random.shuffle(shuffled)
    other = evidence.model_copy(
        update={"features": evidence.features.model_copy(update={"operators": tuple(shuffled)})}
    )
    for one, two in zip(proposals(evidence)[:2], proposals(other)[:2], strict=True):
        assert [round(o.total, 2) for o in one.options] == [round(o.total, 2) for o in two.options]


@MANY
@given(situations())
def test_a_recommendation_is_allowed_explained_and_can_be_recorded(evidence: Evidence) -> None:
    for proposal in proposals(evidence)[:2]:
        best = proposal.option(proposal.recommended)
        assert not best.gates and 0 <= best.total <= 4
        decision = decide(proposal, "recommended")
        assert decision.choice == proposal.recommended and decision.reason
        for row in (row for option in proposal.options for row in option.criteria):
            assert row.explanation and (row.score is None or 0 <= row.score <= 4)
