"""Which libraries would serve which operators. One table, by the names under which libraries are searched for."""

from collections.abc import Callable
from dataclasses import dataclass

from hiera_mcp.contracts.flow import Flow
from hiera_mcp.model.contract import Coverage
from hiera_mcp.model.space import Target, is_cpu
from hiera_mcp.model.work import TracedOperator

Serves = Callable[[TracedOperator], bool]


HALVES = frozenset({"float16", "bfloat16"})
REALS = HALVES | {"float32", "float64"}
COMPLEX = frozenset({"complex64", "complex128"})


@dataclass(frozen=True)
class Entry:
    """What one library does."""

    library: str
    cpu: bool
    serves: Serves
    how: str
    recurrent: bool = False
    """It runs whole recurrent layers."""


def _typed(rule: Serves, types: frozenset[str]) -> Serves:
    """Only for tensors of these types; the first argument stands for all."""
    return lambda o: bool(o.arguments) and o.arguments[0].dtype in types and rule(o)


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
_SELECTIONS = _named(
    "sort", "topk", "kthvalue", "_unique2", "unique_consecutive", "unique_dim", "nonzero", "masked_select", "histc",
    "bincount", "searchsorted", "bucketize",
)  # fmt: skip
_FFT = _named("_fft_r2c", "_fft_c2c", "_fft_c2r")
_SOLVERS = _named(
    "linalg_cholesky_ex", "cholesky", "cholesky_solve", "linalg_lu_factor_ex", "linalg_lu_solve", "_linalg_solve_ex",
    "linalg_inv_ex", "linalg_qr", "_linalg_eigh", "_linalg_svd", "_linalg_det", "_linalg_slogdet",
)  # fmt: skip
_GROUPS = _named("native_group_norm")


def _but(rule: Serves, *exceptions: Serves) -> Serves:
    return lambda o: rule(o) and not any(e(o) for e in exceptions)


TABLE: tuple[Entry, ...] = (
    Entry(
        "cublas",
        False,
        _typed(_kind("gemm"), REALS | COMPLEX),
        "cublasGemmEx, cublasGemmStridedBatchedEx: one call per product",
    ),
    Entry(
        "cublasLt",
        False,
        _typed(_kind("gemm"), REALS | COMPLEX),
        "cublasLtMatmul; its epilogues take along a bias and a ReLU or GELU",
    ),
    Entry(
        "cutlass",
        False,
        _typed(_kind("gemm", "conv"), REALS),
        "a kernel from templates; any elementwise epilogue is fused",
    ),
    Entry(
        "cudnn",
        False,
        _either(
            _typed(_either(_but(_kind("conv", "normalisation"), _GROUPS), _POOLS), REALS),
            _typed(_kind("attention"), HALVES),
        ),
        "graph API: convolution with bias, scale and activation; batch, layer, instance and RMS norm, softmax, pooling, "
        "attention in half precision; whole recurrent layers by cudnnRNNForward",
        recurrent=True,
    ),
    Entry(
        "cccl",
        False,
        _either(_kind("scan"), _SUMS, _SELECTIONS),
        "CUB: DeviceReduce, DeviceSegmentedReduce, DeviceScan, DeviceRadixSort, DeviceSegmentedSort, DeviceSelect, "
        "DeviceHistogram; Thrust: binary searches",
    ),
    Entry("cufft", False, _FFT, "cufftExec… with a plan made in hiera_prepare"),
    Entry("cusolver", False, _SOLVERS, "factorisations and what is solved with them; batched ones are in cuBLAS"),
    Entry(
        "blas",
        True,
        _typed(_kind("gemm"), REALS - HALVES | COMPLEX),
        "cblas_sgemm and its kin, threaded; elementwise work stays outside",
    ),
    Entry(
        "onednn",
        True,
        _typed(_either(_kind("gemm", "conv", "normalisation"), _POOLS, _SUMS), REALS - {"float64"}),
        "primitives with post-ops (bias, sum, activation) in one pass; whole recurrent layers",
        recurrent=True,
    ),
    Entry(
        "fftw3f",
        True,
        _typed(_FFT, frozenset({"float32", "complex64"})),
        "fftwf_execute with a plan made in hiera_prepare; float32",
    ),
    Entry(
        "eigen", True, _either(_kind("gemm"), _SOLVERS), "expression templates: products and factorisations of matrices"
    ),
)
"""By the names that the host's search for libraries reports (`sandbox/libraries.py`)."""


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
