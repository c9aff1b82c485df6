"""Judge and runner on a real GPU: buffers shared by descriptor, events against the judge's own clock."""

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
    pytest.mark.skipif(not importlib.util.find_spec("cupy"), reason="needs cupy (extra cuda12 or cuda13)"),
    pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc"),
]

ROWS, COLUMNS = 8192, 4096
TASK = f"""
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        return torch.relu(x * self.weight + self.bias)

def get_inputs():
    return [torch.rand({ROWS}, {COLUMNS})]

def get_init_inputs():
    return [{COLUMNS}]
"""

HEAD = f"""
#include "contract.h"
static const int64_t N = (int64_t){ROWS} * {COLUMNS}; static const int F = {COLUMNS};
__global__ void affine(const float* x, const float* w, const float* b, float* y, int64_t n, int f) {{
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i] * w[i % f] + b[i % f], 0.f);
}}
__global__ void poke(float* p, int64_t at, float value) {{ p[at] = value; }}
"""
LAUNCH = "affine<<<(unsigned)((N + 255) / 256), 256, 0, stream>>>(x, p->weight, p->bias, y, N, F);"


def body(code: str, before: str = "") -> str:
    return f"""{HEAD}{before}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void* ws,
                         cudaStream_t stream) {{
    const float* x = in->x0;
    float* y = out->y0;
    (void)ws;
    {code}
    return (int)cudaGetLastError();
}}
"""


def _driver_module() -> Any:
    path = Path(__file__).parents[1] / "unit" / "judge" / "conftest.py"
    spec = importlib.util.spec_from_file_location("judge_driver", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    driver = _driver_module().Driver(tmp_path_factory.mktemp("judge"), "cuda:0")
    yield driver
    driver.close()


@pytest.fixture(scope="module")
def contract() -> Any:
    major, minor = torch.cuda.get_device_capability()
    return _driver_module().build_contract(TASK, target=f"cuda:sm_{major}{minor}")


def test_the_judge_tells_its_device_and_versions(driver: Any) -> None:
    assert "NVIDIA" in driver.ready["device_name"]
    assert driver.ready["cuda"] and driver.ready["torch"]


def test_a_right_kernel_passes_and_its_clocks_agree(driver: Any, contract: Any) -> None:
    report = driver.judge(contract, body(LAUNCH))
    assert report.outcome == "passed", report.reason
    assert report.timing.cache == "cold"
    assert report.timing.clocks.claimed == pytest.approx(report.timing.clocks.outside, rel=0.1)
    assert report.verification.deterministic is True
    assert report.timing.speedup.low > 1.2  # one kernel instead of three


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        (LAUNCH.replace("p->bias, y", "p->weight, y"), "elements are wrong"),
        (LAUNCH.replace("y, N, F", "y, N - 5, F"), "5 elements were never written"),
        (LAUNCH + "poke<<<1, 1, 0, stream>>>(y, N, 1.f);", "guard zone 0 bytes past the end of y0"),
    ],
    ids=["wrong", "partly written", "past the end"],
)
def test_a_wrong_kernel_is_caught_and_the_reason_names_what_was_seen(
    driver: Any, contract: Any, code: str, seen: str
) -> None:
    report = driver.judge(contract, body(code))
    assert report.outcome == "wrong_output"
    assert seen in report.reason, report.reason


@pytest.mark.parametrize(
    ("code", "before"),
    [
        (LAUNCH.replace("stream>>>", "0>>>"), ""),
        (
            "if (!side) cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);"
            + LAUNCH.replace("stream>>>", "side>>>"),
            "static cudaStream_t side = nullptr;",
        ),
    ],
    ids=["legacy stream", "side stream"],
)
def test_work_that_the_events_do_not_see_is_suspect(driver: Any, contract: Any, code: str, before: str) -> None:
    report = driver.judge(contract, body(code, before))
    assert report.outcome == "suspect", report.reason
    assert "the judge's clock outside says" in report.reason


@pytest.mark.parametrize("what", ["x", "p->bias"], ids=["an input", "a parameter"])
def test_a_write_to_what_must_not_be_written_faults(driver: Any, contract: Any, what: str) -> None:
    report = driver.judge(contract, body(LAUNCH + f"poke<<<1, 1, 0, stream>>>((float*){what}, 3, 9.f);"))
    assert report.outcome == "candidate_error"
    assert "mapped read-only" in report.reason


def test_an_illegal_address_is_named_and_the_judge_survives_it(driver: Any, contract: Any) -> None:
    report = driver.judge(contract, body("poke<<<1, 1, 0, stream>>>(y, (int64_t)1 << 42, 1.f);"))
    assert report.outcome == "candidate_error"
    assert "illegal" in report.reason.lower()
    assert driver.judge(contract, body(LAUNCH)).outcome == "passed"


def test_a_launch_that_cannot_work_is_told_by_its_cuda_name(driver: Any, contract: Any) -> None:
    report = driver.judge(contract, body(LAUNCH.replace("256, 0, stream", "4096, 0, stream")))
    assert report.outcome == "candidate_error"
    assert "hiera_run returned" in report.reason and "cudaErrorInvalid" in report.reason


def test_a_result_remembered_by_address_is_caught(driver: Any, contract: Any) -> None:
    code = f"if (calls++ > 20) return 0; {LAUNCH}"
    assert driver.judge(contract, body(code, "static int calls = 0;")).outcome == "wrong_output"


def test_a_torch_model_passes(driver: Any, contract: Any) -> None:
    model = """
import torch
class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(features))
        self.bias = torch.nn.Parameter(torch.zeros(features))
    def forward(self, x):
        return torch.addcmul(self.bias, x, self.weight).relu_()
"""
    report = driver.judge(contract, python=model)
    assert report.outcome == "passed", report.reason


def test_a_model_calls_compiled_functions_on_torchs_stream(driver: Any, contract: Any) -> None:
    library = (
        body(LAUNCH)
        + """
extern "C" int fused(const float* x, const float* w, const float* b, float* y, int64_t n, int f, void* stream) {
    if (!stream) return -1;
    affine<<<(unsigned)((n + 255) / 256), 256, 0, (cudaStream_t)stream>>>(x, w, b, y, n, f);
    return (int)cudaGetLastError();
}
"""
    )
    model = """
import torch
from hiera_functions import function
fused = function("fused", "tensor tensor tensor tensor int64 int32 stream")
class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(features))
        self.bias = torch.nn.Parameter(torch.zeros(features))
    def forward(self, x):
        y = torch.empty_like(x)
        fused(x, self.weight, self.bias, y, x.numel(), x.shape[1])
        return y
"""
    report = driver.judge(contract, library, model)
    assert report.outcome == "passed", report.reason


def test_the_kernelbench_protocol_works(driver: Any, contract: Any) -> None:
    report = driver.judge(contract, body(LAUNCH), protocol="kernelbench")
    assert report.outcome == "passed", report.reason
    assert report.timing.pairs == 100
