"""Signals: one vocabulary, null with a reason where evidence is missing, never zero."""

from collections.abc import Callable

import pytest

from hiera_mcp.model.contract import Chain, Contract, Reduction
from hiera_mcp.model.evaluation import Build, Diagnostic, Evaluation, NotRun
from hiera_mcp.model.knowledge import SIGNALS
from hiera_mcp.model.profile import Metric, Occupancy, Profile
from hiera_mcp.model.run import Candidate
from hiera_mcp.model.space import Space
from hiera_mcp.planning.evidence import Evidence, Outcome, outcome_of
from hiera_mcp.planning.signals import CONFLICTS, COUNTERS, COVERS, READERS, WAVEFRONTS, read, signals
from hiera_mcp.sandbox import libraries
from hiera_mcp.sandbox.profiling.metrics import METRICS

STALLS = {"ncu_stall_long_scoreboard", "ncu_stall_barrier"}
"""Come from the section WarpStateStats, one per reason."""


def test_there_is_one_reader_for_each_name_of_the_vocabulary() -> None:
    assert list(READERS) == list(SIGNALS)


def test_every_missing_signal_says_why(evidence: Callable[..., Evidence]) -> None:
    e = evidence()
    missing = {name: read(e, name).reason for name in SIGNALS if read(e, name).value is None}
    assert "dram_pct" in missing and "floor_ratio" in missing and "libraries_installed" in missing
    assert all(missing.values()), missing


def test_the_reason_follows_what_is_missing(evidence: Callable[..., Evidence], outcome: Callable[..., Outcome]) -> None:
    assert read(evidence(), "bottleneck").reason == "no candidate has passed yet"
    assert read(evidence([outcome("a", 2.0)]), "bottleneck").reason == "the best candidate has not been profiled"


def test_shares_are_summed_over_operators_of_a_kind(evidence: Callable[..., Evidence]) -> None:
    values = signals(evidence(work=(("gemm", 0.4, 1), ("gemm", 0.2, 1), ("conv", 0.1, 1), ("elementwise", 0.3, 5))))
    assert values["gemm_share"] == pytest.approx(0.6)
    assert values["contraction_share"] == pytest.approx(0.7)
    assert values["streaming_share"] == pytest.approx(0.3)
    assert values["operators"] == 8


def test_facts_of_the_dataflow_are_read_where_the_contract_states_them(evidence: Callable[..., Evidence]) -> None:
    plain = evidence()
    names = ("fusable_share", "library_share", "depth", "longest_reduction")
    assert all(read(plain, name).reason == "the contract states no dataflow; build it again" for name in names)
    chains = tuple(Chain(operators=("a", "b"), length=2, saved_bytes=1, share=share) for share in (0.5, 0.25))
    reductions = tuple(
        Reduction(operator="aten.sum", count=1, extent=extent, results=1, contiguous=True) for extent in (8, 4096, 64)
    )
    known = plain.features.model_copy(
        update={"depth": 7, "chains": chains, "reductions": reductions, "uncovered_share": 0.25}
    )
    told = plain.model_copy(update={"features": known})
    assert [read(told, name).value for name in names] == [0.75, 0.75, 7, 4096]
    bare = plain.model_copy(update={"features": known.model_copy(update={"reductions": ()})})
    assert read(bare, "longest_reduction").value == 0


def test_wide_loads_are_loads_too(evidence: Callable[..., Evidence]) -> None:
    mix = {"load": 2, "wide_load": 8, "store": 10, "other": 20}
    e = evidence(profile=Profile(bottleneck="memory", summary="s", metrics=(), instruction_mix=mix))
    assert read(e, "memory_share").value == 0.5
    assert read(e, "wide_load_share").value == 0.8


def test_the_least_occupied_kernel_at_its_best_block_size_speaks_for_the_candidate(
    evidence: Callable[..., Evidence],
) -> None:
    rows = (
        Occupancy(kernel="a", block_threads=128, percent=75, limiter="none"),
        Occupancy(kernel="b", block_threads=512, percent=25, limiter="registers"),
        Occupancy(kernel="b", block_threads=1024, percent=0, limiter="threads"),
    )
    e = evidence(profile=Profile(bottleneck="latency", summary="s", metrics=(), occupancy=rows))
    assert (read(e, "occupancy").value, read(e, "occupancy_limiter").value) == (25, "registers")


def test_a_counter_that_the_profiler_could_not_read_keeps_its_reason(evidence: Callable[..., Evidence]) -> None:
    metrics = (Metric(name="ncu_dram_pct", value=None, unit="%", origin="counter", reason="no permission"),)
    e = evidence(profile=Profile(bottleneck="unknown", summary="s", metrics=metrics, counters="counters are forbidden"))
    assert read(e, "dram_pct").reason == "no permission"
    assert read(e, "l2_hit").reason == "counters are forbidden"


def test_bank_conflicts_are_a_share_of_wavefronts(evidence: Callable[..., Evidence]) -> None:
    values = dict(zip((*CONFLICTS, *WAVEFRONTS), (10, 2, 40, 20), strict=True))
    metrics = tuple(Metric(name=name, value=value, unit="", origin="counter") for name, value in values.items())
    e = evidence(profile=Profile(bottleneck="unknown", summary="s", metrics=metrics))
    assert read(e, "conflict_share").value == 0.2


def test_every_counter_is_one_that_the_profiler_reads() -> None:
    assert {*COUNTERS.values(), *CONFLICTS, *WAVEFRONTS} <= {*(f"ncu_{name}" for name in METRICS), *STALLS}


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
def test_the_libraries_that_cover_a_contraction_are_ones_that_the_host_is_searched_for(target: str) -> None:
    names = {known.name for known in libraries.known(target)}
    assert all(names & covering for covering in COVERS.values())


@pytest.mark.parametrize(
    ("work", "installed", "expected"),
    [
        ((("gemm", 1.0, 1),), ["cublas"], True),
        ((("gemm", 1.0, 1),), ["cccl"], False),
        ((("conv", 0.7, 1), ("gemm", 0.3, 1)), ["cublas"], False),
        ((("elementwise", 1.0, 1),), ["cublas"], None),
        ((("gemm", 1.0, 1),), None, None),
    ],
)
def test_a_library_covers_the_heaviest_contraction_or_not(
    work: object, installed: list[str] | None, expected: bool | None, evidence: Callable[..., Evidence]
) -> None:
    assert read(evidence(work=work, libraries=installed), "contraction_library").value is expected


@pytest.fixture
def candidate() -> Candidate:
    return Candidate(id="k1", run_id="r1", round=1, name="a", space=Space.CUDA, sources={})


def test_a_compile_error_is_remembered_by_its_first_message(
    candidate: Candidate, contract: Callable[..., Contract]
) -> None:
    messages = (
        Diagnostic(severity="warning", file="f", line=1, text="unused"),
        Diagnostic(severity="error", file="f", line=2, text="undefined x"),
    )
    build = Build(ok=False, command="nvcc", seconds=1, diagnostics=messages)
    result = Evaluation.model_validate({"status": "compile_error", "reason": "does not compile", "build": build})
    assert outcome_of(candidate, result, contract()).reason == "undefined x"


def test_a_candidate_that_did_not_run_has_no_verdict(candidate: Candidate, contract: Callable[..., Contract]) -> None:
    built = NotRun(reason="no GPU here", build=Build(ok=True, command="nvcc", seconds=1))
    assert outcome_of(candidate, built, contract()).judged is False
    assert outcome_of(candidate, None, contract()).status == "pending"
