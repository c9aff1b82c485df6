"""What a candidate's source shows, and what follows for the directions."""

from collections.abc import Callable
from typing import Any

import pytest

from hiera_mcp.model.plan import CriterionScore
from hiera_mcp.model.profile import Metric, Occupancy, Profile
from hiera_mcp.model.space import Direction
from hiera_mcp.planning.decide import plan_direction
from hiera_mcp.planning.evidence import Evidence, Outcome
from hiera_mcp.planning.source import MEANS, read_sources

PAR, MEM, REU = Direction.PARALLELISM, Direction.MEMORY_TRANSACTIONS, Direction.REUSE_PIPELINING
TC = Direction.TENSOR_CORE_INSTRUCTIONS
GEMM: dict[str, Any] = {"work": (("gemm", 1.0, 1),), "intensity": 600, "tensor_cores": True}

SHOWN = {
    "#pragma unroll 4": "unrolled loops",
    "template <int TILE> __global__ void k();": "compile-time variants",
    "v += __shfl_xor_sync(~0u, v, 16);": "warp-level reductions",
    "__global__ void __launch_bounds__(256) k();": "launch bounds",
    "#pragma omp parallel for": "threads",
    "reinterpret_cast<const float4*>(x)": "vector accesses",
    'asm("ld.global.nc.v4.f32 {%0}, [%1];")': "vector accesses",
    "const float* __restrict__ x": "read-only or streaming accesses",
    "__shared__ float tile[32][32 + 1];": "padded or swizzled tiles",
    "extern __shared__ char raw[];": "shared-memory tiles",
    'asm volatile("cp.async.cg.shared.global [%0], [%1], 16;")': "asynchronous copies",
    "for (int i0 = 0; i0 < M; i0 += BLOCK)": "blocked loops",
    'asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")': "Tensor Core instructions",
    "nvcuda::wmma::mma_sync(c, a, b, c);": "Tensor Core instructions",
    'asm("wgmma.mma_async.sync.aligned.m64n256k8")': "wgmma",
    "__m256 v = _mm256_loadu_ps(x);": "vector loops",
    "#pragma omp parallel for simd": "vector loops",
}


@pytest.mark.parametrize(("line", "name"), SHOWN.items())
def test_a_line_shows_a_means(line: str, name: str) -> None:
    assert name in read_sources({"cuda_source.cu": line}).used


def test_every_means_has_a_line_that_shows_it() -> None:
    unshown = {means.name for means in MEANS} - set(SHOWN.values())
    assert unshown == {"pointers without aliases", "aligned or streaming accesses"}


@pytest.mark.parametrize(
    "text", ["// TODO: float4 and __shfl_xor_sync", "/* cp.async\n #pragma unroll */ int x;", "int8_t x; int float4x;"]
)
def test_what_a_comment_says_is_not_done(text: str) -> None:
    assert not read_sources({"cuda_source.cu": text}).used


@pytest.mark.parametrize(
    ("text", "designs"),
    [
        ('asm("wgmma.fence.sync.aligned;");', ("wgmma",)),
        ('asm("cp.async.bulk.tensor.2d.shared::cluster.global [%0]");', ("TMA",)),
        (
            "for (int t = blockIdx.x; t < tiles; t += gridDim.x) { __pipeline_memcpy_async(a, b, 16); }",
            ("a persistent grid and asynchronous copies",),
        ),
        ("for (int i = blockIdx.x; i < rows; i += gridDim.x) y[i] = x[i];", ()),
        ("for (size_t i = t; i < n; i += gridDim.x * blockDim.x) __pipeline_memcpy_async(a, b, 16);", ()),
        ("for (size_t i = t; i < n; i += blockDim.x * gridDim.x) memcpy_async(a, b);", ()),
        ("// wgmma would be next", ()),
    ],
)
def test_a_design_that_needs_few_warps_is_told_from_a_loop_over_all_threads(
    text: str, designs: tuple[str, ...]
) -> None:
    assert read_sources({"cuda_source.cu": text}).designs == designs


def test_what_the_source_does_already_speaks_against_a_direction(
    evidence: Callable[..., Evidence], outcome: Callable[..., Outcome]
) -> None:
    scores: dict[str, dict[Direction, float | None]] = {}
    for text in ("int x;", "float4 v; __shared__ float a[2]; __pipeline_memcpy_async(a, b, 16); // mma.sync"):
        e = evidence([outcome("a", 2.0, sources={"cuda_source.cu": text})], **GEMM)
        scores[text] = {d: _row(e, d, "source_signs").score for d in (MEM, REU, TC)}
    plain, tiled = scores.values()
    assert plain == {MEM: 4, REU: 4, TC: 4}
    assert tiled[REU] == 0 and 0 < (tiled[MEM] or 0) < 4 and tiled[TC] == 4


def test_the_explanation_names_what_the_source_has_and_has_not(
    evidence: Callable[..., Evidence], outcome: Callable[..., Outcome]
) -> None:
    row = _row(evidence([outcome("a", 2.0, sources={"a.cu": "float4 v;"})]), MEM, "source_signs")
    assert row.evidence["source_of_best"] == {
        "has": ["vector accesses"],
        "has_not": ["read-only or streaming accesses"],
    }
    assert "has vector accesses; it has not read-only" in row.explanation


@pytest.mark.parametrize(
    ("options", "sources", "says"),
    [
        ({}, None, "no candidate has passed"),
        ({}, {}, "not at hand"),
        ({}, {"a.cu": "cublasSgemm(h, x);"}, "calls libraries"),
        ({"tensor_cores": False}, {"a.cu": "int x;"}, "no means of tensor_core_instructions"),
    ],
)
def test_where_the_source_tells_nothing_the_score_is_null_with_the_reason(
    options: dict[str, Any],
    sources: dict[str, str] | None,
    says: str,
    evidence: Callable[..., Evidence],
    outcome: Callable[..., Outcome],
) -> None:
    outcomes = [] if sources is None else [outcome("a", 2.0, sources=sources)]
    row = _row(evidence(outcomes, **GEMM | options), TC, "source_signs")
    assert row.score is None and says in row.explanation


def test_wgmma_is_no_means_of_a_target_without_it(
    evidence: Callable[..., Evidence], outcome: Callable[..., Outcome]
) -> None:
    def open_means(target: str) -> Any:
        e = evidence([outcome("a", 2.0, sources={"a.cu": "int x;"})], target=target, **GEMM)
        return _row(e, TC, "source_signs").evidence["source_of_best"]

    assert "wgmma" in open_means("cuda:sm_90a")["has_not"]
    assert "wgmma" not in open_means("cuda:sm_80")["has_not"]


def profile(**metrics: float) -> Profile:
    return Profile.model_validate(
        {
            "bottleneck": "latency",
            "summary": "s",
            "metrics": [Metric(name=n, value=v, unit="", origin="counter") for n, v in metrics.items()],
            "occupancy": [Occupancy(kernel="k", block_threads=384, percent=9.0, limiter="shared_memory")],
        }
    )


WGMMA = {"cuda_source.cu": 'asm("wgmma.mma_async.sync.aligned.m64n256k8");'}


@pytest.mark.parametrize(
    ("sources", "metrics"),
    [(WGMMA, {}), ({"cuda_source.cu": "int x;"}, {"ncu_tma_loads": 9.0})],
    ids=["source", "counter"],
)
def test_low_occupancy_is_not_held_against_a_kernel_that_is_meant_to_have_it(
    sources: dict[str, str],
    metrics: dict[str, float],
    evidence: Callable[..., Evidence],
    outcome: Callable[..., Outcome],
) -> None:
    def scores(sources: dict[str, str], **seen: float) -> list[float | None]:
        e = evidence([outcome("a", 2.0, sources=sources)], target="cuda:sm_90a", profile=profile(**seen), **GEMM)
        return [_row(e, PAR, name).score for name in ("static_signs", "profile_signs")]

    assert scores({"cuda_source.cu": "int x;"}) == [4, 4]
    assert scores(sources, **metrics) == [1, 1]


def test_a_persistent_kernel_is_not_sent_to_parallelism(
    evidence: Callable[..., Evidence], outcome: Callable[..., Outcome]
) -> None:
    def recommended(text: str) -> str:
        best = outcome("a", 2.0, sources={"cuda_source.cu": text}, floor_ratio=2.0, direction=None)
        return plan_direction(evidence([best], target="cuda:sm_90a", profile=profile(), **GEMM)).recommended

    assert recommended("int x;") == PAR
    assert recommended(WGMMA["cuda_source.cu"]) != PAR


def _row(e: Evidence, direction: Direction, criterion: str) -> CriterionScore:
    option = plan_direction(e).option(direction)
    return next(c for c in option.criteria if c.criterion == criterion)
