"""The PyTorch space: ModelNew on shared buffers, state by name, compiled functions through hiera_functions."""

from collections.abc import Callable
from typing import Any

import pytest

from hiera_mcp.model.contract import Contract

pytestmark = pytest.mark.alone

TASK = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, wide, out, scale):
        super().__init__()
        self.fc = nn.Linear(wide, out)
        self.norm = nn.BatchNorm1d(out)
        self.scale = scale

    def forward(self, x, index):
        return torch.tanh(self.norm(self.fc(x)))[index] * self.scale, index.clamp(max=3)

def get_inputs():
    return [torch.rand(128, 64), torch.randint(0, 128, (50,))]

def get_init_inputs():
    return [64, 32, 2.0]
"""

RIGHT = """
import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self, wide, out, scale):
        super().__init__()
        self.fc = nn.Linear(wide, out)
        self.norm = nn.BatchNorm1d(out)
        self.scale = scale

    def forward(self, x, index):
        return (self.scale * torch.tanh(self.norm(self.fc(x))))[index], torch.minimum(index, torch.tensor(3))
"""


@pytest.fixture(scope="module", params=["train", "eval"])
def contract(request: pytest.FixtureRequest, contract_for: Callable[..., Contract]) -> Contract:
    return contract_for(TASK, notes=("mode: eval",) if request.param == "eval" else ())


@pytest.fixture(scope="module")
def plain(contract_for: Callable[..., Contract]) -> Contract:
    return contract_for(TASK)


def test_a_right_model_passes_in_the_mode_of_the_contract(driver: Any, contract: Contract) -> None:
    report = driver.judge(contract, python=RIGHT)
    assert report.outcome == "passed", report.reason


@pytest.mark.parametrize(
    ("old", "new", "seen"),
    [
        ("self.fc", "self.linear", "state that the reference does not have: linear.bias, linear.weight"),
        ("torch.minimum(index, torch.tensor(3))", "index", "output y1"),
        ("return (self", "raise KeyError('lost it')\n        return (self", "model_new.py:13 in forward"),
        ("[index], torch", "[index].double(), torch", "the contract has torch.float32 [50, 32]"),
        ("[index], torch", "[index][:9], torch", "[9, 32]"),
        (", torch.minimum(index, torch.tensor(3))", "", "forward() gave 1 outputs, the contract has 2"),
        ("class ModelNew", "class Other", "does not define ModelNew"),
        ("import torch\n", "import nothing_like_it\nimport torch\n", "nothing_like_it"),
        ("self.scale * ", "", "elements are wrong"),
    ],
)
def test_a_model_that_fails_is_told_why(driver: Any, plain: Contract, old: str, new: str, seen: str) -> None:
    report = driver.judge(plain, python=RIGHT.replace(old, new))
    assert report.outcome in ("candidate_error", "wrong_output")
    assert seen in report.reason, report.reason


def test_only_the_candidates_own_frames_are_shown(driver: Any, plain: Contract) -> None:
    report = driver.judge(plain, python=RIGHT.replace("self.fc(x)", "self.fc(x.t())"))
    assert report.outcome == "candidate_error"
    assert "model_new.py" in report.reason and "python_candidate" not in report.reason


def test_a_lazy_tensor_subclass_is_refused(driver: Any, plain: Contract) -> None:
    lazy = RIGHT.replace("class ModelNew", "class Lazy(torch.Tensor):\n    pass\n\nclass ModelNew")
    report = driver.judge(plain, python=lazy.replace("[index], torch", "[index].as_subclass(Lazy), torch"))
    assert report.outcome == "candidate_error" and "Lazy" in report.reason


def test_a_patched_clock_is_suspect_and_the_numbers_are_given(driver: Any, plain: Contract) -> None:
    patch = """
import time
_clock = time.perf_counter_ns
time.perf_counter_ns = lambda: _clock() // 100
"""
    report = driver.judge(plain, python=patch + RIGHT)
    assert report.outcome == "suspect"
    assert "the runner claims" in report.reason and "outside" in report.reason


def test_compiled_functions_are_called_through_hiera_functions(
    driver: Any, contract_for: Callable[..., Contract]
) -> None:
    task = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, factor):
        return x * factor
def get_inputs():
    return [torch.rand(64, 64), 3.0]
def get_init_inputs():
    return []
"""
    library = """
#include "contract.h"
extern "C" int hiera_run(const hiera_inputs*, const hiera_params*, const hiera_outputs*, void*) { return 1; }
extern "C" int scale(const float* x, float* y, int64_t n, float factor, void* stream) {
    if (stream) return 2;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * factor;
    return 0;
}
"""
    model = """
import torch
from hiera_functions import function
scale = function("scale", "tensor tensor int64 float32 stream")
class ModelNew(torch.nn.Module):
    def forward(self, x, factor):
        y = torch.empty_like(x)
        scale(x, y, x.numel(), factor)
        return y
"""
    report = driver.judge(contract_for(task), cpp=library, python=model)
    assert report.outcome == "passed", report.reason
