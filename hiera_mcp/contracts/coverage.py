"""Which libraries would serve which operators. One table, by the names under which libraries are searched for."""

from collections.abc import Callable
from dataclasses import dataclass

from hiera_mcp.contracts.flow import Flow
from hiera_mcp.model.contract import Coverage
from hiera_mcp.model.space import Target, is_cpu
from hiera_mcp.model.work import TracedOperator

Serves = Callable[[TracedOperator], bool]


@dataclass(frozen=True)
class Entry:
    """What one library does."""

    library: str
    cpu: bool
    serves: Serves
    how: str
    recurrent: bool = False
    """It runs whole recurrent layers."""


def _kind(*kinds: str) -> Serves:
    return lambda o: o.kind in kinds


def _named(*names: str) -> Serves:
    wanted = frozenset(names)
    return lambda o: o.name.rpartition(".")[2].rstrip("_") in wanted


def _either(*rules: Serves) -> Serves:
    return lambda o: any(rule(o) for rule in rules)


_POOLS = _named(
    "max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "_adaptive_avg_pool2d", "_adaptive_avg_pool3d",
)  # fmt: skip
_SUMS = _named(
    "sum", "mean", "amax", "amin", "max", "min", "argmax", "argmin", "prod", "any", "all", "count_nonzero",
    "linalg_vector_norm", "norm", "aminmax",
)  # fmt: skip
_FFT = _named("_fft_r2c", "_fft_c2c", "_fft_c2r")

TABLE: tuple[Entry, ...] = (
    Entry("cublas", False, _kind("gemm"), "cublasGemmEx, cublasGemmStridedBatchedEx; one call per product"),
    Entry(
        "cublasLt", False, _kind("gemm"), "cublasLtMatmul; its epilogues take along a bias, ReLU, GELU and their sum"
    ),
    Entry("cutlass", False, _kind("gemm", "conv"), "a kernel from templates; any elementwise epilogue is fused"),
    Entry(
        "cudnn",
        False,
        _either(_kind("conv", "attention", "normalisation"), _POOLS),
        "graph API: convolution with bias, scale and activation; norms, softmax, pooling, attention; whole recurrent layers "
        "by cudnnRNNForward",
        recurrent=True,
    ),
    Entry(
        "cub",
        False,
        _either(_kind("scan"), _SUMS, _named("sort", "topk")),
        "DeviceReduce, DeviceSegmentedReduce, DeviceScan, DeviceRadixSort",
    ),
    Entry("cufft", False, _FFT, "cufftExec… with a plan made in hiera_prepare"),
    Entry("blas", True, _kind("gemm"), "cblas_sgemm and its kin, threaded; elementwise work stays outside"),
    Entry(
        "onednn",
        True,
        _either(_kind("gemm", "conv", "normalisation"), _POOLS, _SUMS),
        "primitives with post-ops (bias, sum, activation) in one pass; whole recurrent layers",
        recurrent=True,
    ),
)


def coverage_of(flow: Flow, target: Target) -> tuple[tuple[Coverage, ...], float]:
    """The libraries that serve something, the most useful first, and the share of time that none serves."""
    cpu = is_cpu(target)
    entries = [e for e in TABLE if e.cpu == cpu]
    rows = [_row(flow, e) for e in entries]
    served = {n for e in entries for n in _calls(flow, e)}
    left = [n for n in range(len(flow.trace.calls)) if n not in served]
    return tuple(sorted((r for r in rows if r.operators), key=lambda r: -r.share)), flow.share(left)


def _row(flow: Flow, entry: Entry) -> Coverage:
    calls = _calls(flow, entry)
    names = dict.fromkeys(_label(flow, n, entry.recurrent) for n in calls)
    return Coverage(library=entry.library, operators=tuple(names), share=flow.share(calls), how=entry.how)


def _calls(flow: Flow, entry: Entry) -> list[int]:
    by_kind = [entry.serves(o) for o in flow.trace.operators]
    return [
        n
        for n, call in enumerate(flow.trace.calls)
        if by_kind[call.operator] or (entry.recurrent and flow.recurrent(call) is not None)
    ]


def _label(flow: Flow, n: int, recurrent: bool) -> str:
    call = flow.trace.calls[n]
    module = flow.recurrent(call) if recurrent else None
    return flow.operator(call).name if module is None else f"{flow.trace.modules[module].type} layer"
