"""Which libraries serve which operators, on traces of small modules."""

from collections.abc import Callable, Mapping

import pytest

from hiera_mcp.contracts.coverage import TABLE
from hiera_mcp.contracts.features import features_of
from hiera_mcp.model.contract import Coverage, Features, Precision
from hiera_mcp.model.hardware import Peaks
from hiera_mcp.model.space import Target
from hiera_mcp.model.work import Trace
from hiera_mcp.sandbox.libraries import known

Tracer = Callable[..., Trace]
TaskText = Callable[..., str]
CoverageOf = Callable[..., Mapping[str, Coverage]]

PEAKS = Peaks(bandwidth=1e12, flops={"fp32": 1e13, "fp64": 1e13, "fp16": 2e13}, basis="round numbers")
IMAGE = "[torch.rand(2, 4, 6, 8)]"


@pytest.fixture
def features(trace: Tracer, task_text: TaskText) -> Callable[..., Features]:
    def run(
        forward: str,
        target: Target,
        module: str = "nn.Identity()",
        inputs: str = IMAGE,
        precision: Precision = "float32",
    ) -> Features:
        source = task_text(forward=f"return {forward}", inputs=inputs, init=f"self.f = {module}")
        return features_of(trace(source, precision=precision), target, precision, PEAKS, False)

    return run


def _libraries(features: Features) -> set[str]:
    return {c.library for c in features.libraries}


SERVED = {
    # what: (forward, module, on a GPU, on a processor)
    "gemm": ("self.f(x)", "nn.Linear(8, 4)", "cublas cublasLt cutlass", "blas onednn eigen"),
    "conv": ("self.f(x)", "nn.Conv2d(4, 4, 3)", "cudnn cutlass", "onednn"),
    "batch norm": ("self.f(x)", "nn.BatchNorm2d(4)", "cudnn", "onednn"),
    "group norm": ("self.f(x)", "nn.GroupNorm(2, 4)", "", "onednn"),
    "softmax": ("x.softmax(1)", "nn.Identity()", "cudnn", "onednn"),
    "sum": ("x.sum(1)", "nn.Identity()", "cccl", "onednn"),
    "pooling": ("F.max_pool2d(x, 2)", "nn.Identity()", "cudnn", "onednn"),
    "scan": ("x.cumsum(1)", "nn.Identity()", "cccl", ""),
    "sort": ("x.sort(1)[0]", "nn.Identity()", "cccl", ""),
    "topk": ("x.topk(2)[0]", "nn.Identity()", "cccl", ""),
    "fft": ("torch.fft.rfft(x).abs()", "nn.Identity()", "cufft", "fftw3f"),
    "factorisation": ("torch.linalg.inv(x[..., :6])", "nn.Identity()", "cusolver", "eigen"),
    "elementwise": ("x.relu()", "nn.Identity()", "", ""),
}


@pytest.mark.parametrize(("forward", "module", "gpu", "cpu"), SERVED.values(), ids=list(SERVED))
def test_a_kind_of_work_is_served_by_its_libraries(
    features: Callable[..., Features], forward: str, module: str, gpu: str, cpu: str
) -> None:
    assert _libraries(features(forward, "cuda:sm_90a", module)) == set(gpu.split())
    assert _libraries(features(forward, "cpu", module)) == set(cpu.split())


def test_attention_is_served_in_half_precision(features: Callable[..., Features]) -> None:
    forward = "F.scaled_dot_product_attention(x, x, x)"
    assert _libraries(features(forward, "cuda:sm_90a", precision="float16")) == {"cudnn"}
    assert _libraries(features(forward, "cuda:sm_90a")) == set()


def test_types_that_a_library_does_not_take_are_not_served(features: Callable[..., Features]) -> None:
    assert _libraries(features("self.f(x)", "cpu", "nn.Linear(8, 4)", precision="float64")) == {"blas", "eigen"}
    assert "blas" not in _libraries(features("self.f(x)", "cpu", "nn.Linear(8, 4)", precision="bfloat16"))


@pytest.mark.parametrize(("kind", "target", "library"), [("LSTM", "cuda:sm_80", "cudnn"), ("GRU", "cpu", "onednn")])
def test_recurrent_layers_are_served_as_a_whole(
    features: Callable[..., Features], kind: str, target: Target, library: str
) -> None:
    f = features("self.f(x)[0]", target, f"nn.{kind}(8, 16)", "[torch.rand(5, 2, 8)]")
    row = next(c for c in f.libraries if c.library == library)
    assert (row.operators, row.share, f.uncovered_share) == ((f"{kind} layer",), 1, 0)


def test_what_no_library_serves_is_the_rest_of_the_time(features: Callable[..., Features]) -> None:
    f = features("self.f(x).tanh()", "cuda:sm_90a", "nn.Conv2d(4, 4, 3)")
    tanh = next(o.share for o in f.operators if o.name == "aten.tanh")
    assert f.uncovered_share == pytest.approx(tanh)
    assert all(c.share == pytest.approx(1 - tanh) for c in f.libraries)


def test_the_most_useful_library_comes_first(features: Callable[..., Features]) -> None:
    f = features("x.sum((2, 3)) @ self.f.weight", "cuda:sm_90a", "nn.Linear(2000, 4)")
    assert [c.share for c in f.libraries] == sorted((c.share for c in f.libraries), reverse=True)
    assert f.libraries[-1].library == "cccl"


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
def test_libraries_are_called_what_the_search_of_the_host_calls_them(target: Target) -> None:
    assert {e.library for e in TABLE if e.cpu == (target == "cpu")} <= {k.name for k in known(target)}
