"""The space decision on golden workloads, at the first step and later."""

from collections.abc import Callable
from typing import Any

import pytest

from hiera_mcp.model.plan import CriterionScore, OptionScore
from hiera_mcp.model.space import Space
from hiera_mcp.planning.decide import plan_space
from hiera_mcp.planning.evidence import Evidence, Outcome

WORKLOADS: dict[str, tuple[dict[str, Any], str]] = {
    "a matrix product": ({"work": (("gemm", 1.0, 1),), "intensity": 600}, "cuda_libraries"),
    "a matrix product with Tensor Cores": (
        {"work": (("gemm", 1.0, 1),), "intensity": 600, "tensor_cores": True},
        "cuda_libraries",
    ),
    "a depthwise convolution": ({"work": (("conv", 1.0, 1),), "intensity": 2.2}, "cuda"),
    "one elementwise operator": ({}, "cuda"),
    "a chain of elementwise operators": ({"work": (("elementwise", 1.0, 8),), "fusion": 5}, "cuda"),
    "a chain on a CPU": (
        {"target": "cpu", "work": (("elementwise", 0.6, 4), ("reduction", 0.4, 1)), "fusion": 4},
        "cpp",
    ),
    "a layer norm": ({"target": "cuda:sm_90a", "work": (("normalisation", 1.0, 1),)}, "cuda"),
    "a deep convolutional network": (
        {
            "work": (("conv", 0.8, 53), ("normalisation", 0.1, 53), ("elementwise", 0.1, 49)),
            "fusion": 8,
            "intensity": 60,
            "parameters": 320,
        },
        "cuda_libraries_pytorch",
    ),
    "an MLP on a CPU": (
        {"target": "cpu", "work": (("gemm", 0.9, 3), ("elementwise", 0.1, 2)), "fusion": 1.2, "intensity": 60},
        "cpp_libraries",
    ),
    "many tiny operators": ({"work": (("elementwise", 1.0, 6),), "fusion": 6, "seconds": 3e-6}, "cuda"),
}


@pytest.mark.parametrize(("options", "expected"), WORKLOADS.values(), ids=WORKLOADS.keys())
def test_the_first_recommendation_fits_the_workload(
    options: dict[str, Any], expected: str, evidence: Callable[..., Evidence]
) -> None:
    assert plan_space(evidence(**options)).recommended == expected


def test_without_any_candidates_only_the_criteria_of_runs_are_null(
    evidence: Callable[..., Evidence], dataflow: Callable[..., dict[str, Any]]
) -> None:
    for option in plan_space(evidence(dataflow=dataflow())).options:
        why = {c.criterion: c.explanation for c in option.criteria if c.score is None}
        assert set(why) == {"library_distance", "measured_distance", "record_in_run", "memory"}
        assert "no other run" in why["memory"]


def test_a_contract_of_an_old_version_is_planned_without_its_dataflow(evidence: Callable[..., Evidence]) -> None:
    for option in plan_space(evidence(fusion=3.2)).options:
        null = {c.criterion: c.explanation for c in option.criteria if c.score is None}
        assert "build it again" in null["dependency_depth"]
        assert {"reduction_span", "library_coverage"} < set(null)
        assert _criterion(option, "fusion_gain").score is not None


def test_bytes_between_operators_that_cannot_be_fused_are_no_reason_for_own_code(
    evidence: Callable[..., Evidence], dataflow: Callable[..., dict[str, Any]]
) -> None:
    products = {"work": (("gemm", 1.0, 4),), "fusion": 4.0, "intensity": 600}
    for share, expected in ((0.02, 4), (0.6, 1)):
        e = evidence(**products, dataflow=dataflow(depth=4, chains=((2, 1, share),)))
        assert _criterion(plan_space(e).options[2], "fusion_gain").score == expected


@pytest.mark.parametrize(
    ("depth", "chains", "kernels", "by_hand"),
    [
        (1, (), 1, 4),
        (8, ((8, 1, 1.0),), 1, 4),  # one chain: one kernel
        (8, (), 8, 2),
        (157, ((3, 52, 0.9),), 53, 0),  # a deep network: a convolution, its norm and its activation at a time
        (4, ((4, 9, 1.0),), 1, 4),  # nine branches side by side do not shorten the path below one kernel
    ],
)
def test_the_dependent_kernels_are_counted_after_fusion(
    depth: int,
    chains: tuple[tuple[int, int, float], ...],
    kernels: int,
    by_hand: float,
    evidence: Callable[..., Evidence],
    dataflow: Callable[..., dict[str, Any]],
) -> None:
    hand, _, pytorch = plan_space(evidence(dataflow=dataflow(depth=depth, chains=chains))).options
    row = _criterion(hand, "dependency_depth")
    assert (row.evidence["fused_depth"], row.score) == (kernels, by_hand)
    assert _criterion(pytorch, "dependency_depth").score == 4


def test_a_sum_over_many_millions_speaks_against_own_code_and_a_row_of_a_norm_does_not(
    evidence: Callable[..., Evidence], dataflow: Callable[..., dict[str, Any]]
) -> None:
    found = {}
    for longest in (768, 1 << 27):
        e = evidence(work=(("reduction", 1.0, 1),), dataflow=dataflow(longest=longest))
        found[longest] = [_criterion(o, "reduction_span").score for o in plan_space(e).options]
    assert found == {768: [4, 4, 4], 1 << 27: [2.5, 2.5, 4]}


def test_libraries_with_a_sort_or_a_scan_speak_for_the_space_that_may_call_them(
    evidence: Callable[..., Evidence], dataflow: Callable[..., dict[str, Any]]
) -> None:
    scan: dict[str, Any] = {"work": (("scan", 1.0, 1),), "dataflow": dataflow(covered=1.0)}
    scores = [_criterion(o, "library_coverage").score for o in plan_space(evidence(**scan, libraries=["cccl"])).options]
    assert scores == [3, 4, 4]
    none = plan_space(evidence(**scan, libraries=[])).options[1]
    assert _criterion(none, "library_coverage").score == 3 and none.gates


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("normalisation", "cuda"),
        ("reduction", "cuda"),
        ("elementwise", "cuda"),
        ("movement", "cuda"),
        ("scan", "cuda_libraries"),
    ],
)
def test_an_operator_by_itself_is_not_left_to_pytorch_which_would_win_nothing(
    kind: str, expected: str, evidence: Callable[..., Evidence], dataflow: Callable[..., dict[str, Any]]
) -> None:
    longest = 1 << 22 if kind in ("normalisation", "reduction", "scan") else 0
    e = evidence(work=((kind, 1.0, 1),), dataflow=dataflow(longest=longest, covered=0.0 if kind == "movement" else 1.0))
    proposal = plan_space(e)
    assert proposal.recommended == expected
    assert _criterion(proposal.options[2], "beyond_eager").score == 0


def test_tuned_contractions_are_little_to_win_for_any_space_and_nothing_for_pytorch(
    evidence: Callable[..., Evidence], dataflow: Callable[..., dict[str, Any]]
) -> None:
    e = evidence(
        work=(("conv", 0.9, 3), ("elementwise", 0.1, 3)), intensity=600, dataflow=dataflow(chains=((2, 3, 1.0),))
    )
    assert [_criterion(o, "beyond_eager").score for o in plan_space(e).options] == [1, 1, 0]


@pytest.mark.parametrize("kind", ["gemm", "conv", "attention"])
@pytest.mark.parametrize("libraries", [None, ["cublas", "cudnn"]])
def test_a_contraction_by_itself_goes_to_the_smallest_space_that_holds_the_library(
    kind: str, libraries: list[str] | None, evidence: Callable[..., Evidence], dataflow: Callable[..., dict[str, Any]]
) -> None:
    e = evidence(work=((kind, 1.0, 1),), intensity=600, libraries=libraries, dataflow=dataflow(covered=1.0))
    proposal = plan_space(e)
    assert proposal.recommended == "cuda_libraries"
    assert [_criterion(o, "contraction_coverage").score for o in proposal.options] == [0, 4, 4]


def test_a_contraction_that_only_streams_is_not_left_to_pytorch_either(
    evidence: Callable[..., Evidence], dataflow: Callable[..., dict[str, Any]]
) -> None:
    e = evidence(work=(("conv", 1.0, 1),), intensity=2.2, dataflow=dataflow(covered=1.0))
    assert [_criterion(o, "beyond_eager").score for o in plan_space(e).options] == [4, 4, 0]


def test_own_kernels_fuse_between_calls_in_every_space_so_that_pytorch_keeps_only_a_part_of_the_traffic(
    evidence: Callable[..., Evidence], dataflow: Callable[..., dict[str, Any]]
) -> None:
    e = evidence(work=(("gemm", 0.5, 1), ("elementwise", 0.5, 3)), fusion=4, dataflow=dataflow(chains=((3, 1, 0.5),)))
    assert [_criterion(o, "fusion_gain").score for o in plan_space(e).options] == [4, 2, 1]


@pytest.mark.parametrize(("speedup", "scores"), [(1.1, [0, 4, 4]), (10.0, [4, 2, 0])])
def test_how_far_library_kernels_end_from_the_floor_is_read_from_the_timed_reference(
    speedup: float, scores: list[float], evidence: Callable[..., Evidence], outcome: Callable[..., Outcome]
) -> None:
    e = evidence([outcome("a", speedup, floor_ratio=1.0)], seconds=1e-3 / speedup)
    assert [_criterion(o, "library_distance").score for o in plan_space(e).options] == scores


def test_the_same_evidence_gives_the_same_proposal(evidence: Callable[..., Evidence]) -> None:
    options = {"work": (("gemm", 0.6, 2), ("elementwise", 0.4, 3)), "fusion": 2.0}
    assert plan_space(evidence(**options)) == plan_space(evidence(**options))


def test_a_space_in_which_everything_fails_loses_its_lead(
    evidence: Callable[..., Evidence], outcome: Callable[..., Outcome]
) -> None:
    failed = [outcome(f"f{i}", status="wrong_output", space=Space.CUDA) for i in range(6)]
    assert plan_space(evidence(failed)).recommended == "cuda_libraries"


def test_a_space_far_from_the_floor_scores_below_one_that_is_near(
    evidence: Callable[..., Evidence], outcome: Callable[..., Outcome]
) -> None:
    e = evidence(
        [
            outcome("hand", 1.5, space=Space.CUDA, floor_ratio=6.0),
            outcome("lib", 2.0, space=Space.CUDA_LIBRARIES, floor_ratio=1.1),
        ]
    )
    cuda, libraries, _ = plan_space(e).options
    assert (_criterion(cuda, "measured_distance").score, _criterion(libraries, "measured_distance").score) == (0, 4)


def test_a_library_that_does_not_cover_the_work_is_no_reason_for_the_library_space(
    evidence: Callable[..., Evidence],
) -> None:
    task: dict[str, Any] = {"work": (("gemm", 1.0, 1),), "intensity": 600}
    assert plan_space(evidence(**task, libraries=["cublas"])).recommended == "cuda_libraries"
    assert plan_space(evidence(**task, libraries=["cccl"])).recommended == "cuda_libraries_pytorch"


def test_pending_and_unrun_candidates_are_no_record(
    evidence: Callable[..., Evidence], outcome: Callable[..., Outcome]
) -> None:
    e = evidence([outcome("p", status="pending"), outcome("n", status="not_run")])
    assert _criterion(plan_space(e).options[0], "record_in_run").score is None


def test_an_explanation_quotes_the_values_that_were_read(evidence: Callable[..., Evidence]) -> None:
    row = _criterion(plan_space(evidence(fusion=3.2)).options[2], "fusion_gain")
    assert row.evidence == {"fusion_ratio": 3.2, "fusable_share": None}
    assert "3.2×" in row.explanation


def _criterion(option: OptionScore, name: str) -> CriterionScore:
    return next(c for c in option.criteria if c.criterion == name)
