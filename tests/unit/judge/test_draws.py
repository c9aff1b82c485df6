"""Random numbers that forward() draws, and cases of get_cases(), through the real judge."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.contracts.adapter import adapt
from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.model.contract import Contract, TensorSpec
from hiera_mcp.sandbox.child.random_draws import is_random

RECURRENT = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Linear(8, 8)
    def forward(self, x):
        h = torch.randn(x.size(0), 8, dtype=x.dtype, device=x.device)
        for t in range(x.size(1)):
            h = torch.tanh(self.w(x[:, t]) + h)
        return h
def get_inputs():
    return [torch.rand(4, 3, 8)]
def get_init_inputs():
    return []
"""
STEP = """
#include "contract.h"
#include <cmath>
#include <cstring>
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    float h[4][8] = {};
    @
    for (int t = 0; t < 3; ++t)
        for (int b = 0; b < 4; ++b) {
            float next[8];
            for (int o = 0; o < 8; ++o) {
                float sum = p->w_bias[o] + h[b][o];
                for (int i = 0; i < 8; ++i) sum += p->w_weight[o * 8 + i] * in->x0[(b * 3 + t) * 8 + i];
                next[o] = std::tanh(sum);
            }
            std::memcpy(h[b], next, sizeof next);
        }
    std::memcpy(out->y0, h, sizeof h);
    return 0;
}
"""
DROPOUT = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.dropout(x, 0.25, training=True)
def get_inputs():
    return [torch.rand(16, 64)]
def get_init_inputs():
    return []
"""
MASKED = """
#include "contract.h"
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {
    for (long i = 0; i < HIERA_NUMEL_x0; ++i) out->y0[i] = in->x0[i] * in->draw0[i] / 0.75f;
    return 0;
}
"""


def with_draw(contract: Contract, shape: tuple[int, ...]) -> Contract:
    """The contract with one random draw of forward() among its inputs."""
    case = contract.cases[0]
    inputs = (*case.inputs, TensorSpec(name="draw0", shape=shape, dtype="float32"))
    return contract.model_copy(update={"cases": (case.model_copy(update={"inputs": inputs, "draws": ("draw0",)}),)})


@pytest.fixture
def recurrent(contract_for: Callable[..., Contract]) -> Contract:
    return with_draw(contract_for(RECURRENT), (4, 8))


@pytest.mark.alone
@pytest.mark.parametrize("protocol", ["hiera", "kernelbench"])
def test_a_candidate_that_starts_from_the_drawn_state_passes(driver: Any, recurrent: Contract, protocol: str) -> None:
    report = driver.judge(recurrent, STEP.replace("@", "std::memcpy(h, in->draw0, sizeof h);"), protocol=protocol)
    assert report.outcome == "passed", report.reason
    assert report.verification.oracle == "float64"


def test_a_candidate_that_ignores_the_drawn_state_is_wrong(driver: Any, recurrent: Contract) -> None:
    assert driver.judge(recurrent, STEP.replace("@", "")).outcome == "wrong_output"


@pytest.mark.alone
def test_a_model_new_gets_the_draws_behind_the_arguments_of_forward(driver: Any, recurrent: Contract) -> None:
    """And the reference's own text, which draws for itself, is wrong."""
    draw = "h = torch.randn(x.size(0), 8, dtype=x.dtype, device=x.device)"
    renamed = RECURRENT.replace("class Model(", "class ModelNew(")
    given = renamed.replace("forward(self, x)", "forward(self, x, h)").replace(draw, "")
    report = driver.judge(recurrent, python=given)
    assert report.outcome == "passed", report.reason
    own = renamed.replace("forward(self, x)", "forward(self, x, ignored)")
    assert driver.judge(recurrent, python=own).outcome == "wrong_output"


@pytest.mark.alone
def test_functional_dropout_hands_over_its_mask(driver: Any, contract_for: Callable[..., Contract]) -> None:
    contract = with_draw(contract_for(DROPOUT), (16, 64))
    report = driver.judge(contract, MASKED)
    assert report.outcome == "passed", report.reason
    assert driver.judge(contract, MASKED.replace("* in->draw0[i]", "")).outcome == "wrong_output"


def test_another_number_of_draws_is_the_references_fault(driver: Any, recurrent: Contract) -> None:
    case = recurrent.cases[0]
    inputs = (*case.inputs, TensorSpec(name="draw1", shape=(4, 8), dtype="float32"))
    more = case.model_copy(update={"inputs": inputs, "draws": ("draw0", "draw1")})
    event = driver.ask(recurrent.model_copy(update={"cases": (more,)}), STEP.replace("@", ""))
    assert event["event"] == "failed"
    assert "drew 1 times, the contract has 2 draws" in event["error"]


FUNCTION = """
def scaled(x, w):
    return x @ w
"""
PRODUCT = """
#include "contract.h"
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {
    const int rows = @;
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < 3; ++c) {
            float sum = 0;
            for (int k = 0; k < 6; ++k) sum += in->x0[r * 6 + k] * in->x1[k * 3 + c];
            out->y0[r * 3 + c] = sum;
        }
    return 0;
}
"""


@pytest.mark.alone
def test_every_case_of_a_function_is_verified(driver: Any, contract_for: Callable[..., Contract]) -> None:
    cases = [f"{n} = x: float32[{r}, 6], w: float32[6, 3]" for n, r in (("small", 4), ("large", 40))]
    contract = contract_for(adapt(FUNCTION, "scaled", cases), extra_shapes=((40, 6),))
    named = [c.model_copy(update={"name": n}) for c, n in zip(contract.cases, ("small", "large"), strict=True)]
    contract = contract.model_copy(update={"cases": tuple(named)})
    report = driver.judge(contract, PRODUCT.replace("@", "HIERA_DIM_x0_0"))
    assert report.outcome == "passed", report.reason
    wrong = driver.judge(contract, PRODUCT.replace("@", "4"))
    assert wrong.outcome == "wrong_output"
    assert "case large" in wrong.reason and "never written" in wrong.reason


def test_each_case_is_drawn_as_get_cases_draws_it(driver: Any, contract_for: Callable[..., Contract]) -> None:
    """Only the second case draws values whose products are large; what get_inputs() draws never is."""
    text = FUNCTION + (
        "import torch\n"
        "def get_cases():\n"
        "    return {'small': [torch.rand(4, 6), torch.rand(6, 3)],\n"
        "            'large': [torch.full((40, 6), 7e7), torch.rand(6, 3)]}\n"
    )
    contract = contract_for(adapt(text, "scaled"), extra_shapes=((40, 6),))
    named = [c.model_copy(update={"name": n}) for c, n in zip(contract.cases, ("small", "large"), strict=True)]
    contract = contract.model_copy(update={"cases": tuple(named)})
    clipped = PRODUCT.replace("@", "HIERA_DIM_x0_0").replace("= sum;", "= sum < 2e7f ? sum : 0;")
    report = driver.judge(contract, clipped)
    assert report.outcome == "wrong_output"
    assert "case large, trial own #1" in report.reason


def run_demo(contract: Contract, code: str, folder: Path) -> str:
    """What torch_demo.py prints of a candidate."""
    for name, text in {**render_files(contract), "cpu_source.cpp": code}.items():
        (folder / name).write_text(text)
    command = ["g++", "-O1", "-std=c++17", "-shared", "-fPIC", "-DHIERA_CASE=0", "-o", "case0.so"]
    subprocess.run([*command, "cpu_source.cpp", "cpp_source.cpp"], cwd=folder, check=True)
    demo = [sys.executable, "torch_demo.py", "case0.so"]
    return subprocess.run(demo, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("text", "shape", "right", "wrong"),
    [
        (RECURRENT, (4, 8), STEP.replace("@", "std::memcpy(h, in->draw0, sizeof h);"), STEP.replace("@", "")),
        (DROPOUT, (16, 64), MASKED, MASKED.replace("* in->draw0[i]", "")),
    ],
    ids=["initial state", "dropout"],
)
def test_the_demo_hands_over_what_the_reference_drew(
    driver: Any,
    contract_for: Callable[..., Contract],
    tmp_path: Path,
    text: str,
    shape: tuple[int, ...],
    right: str,
    wrong: str,
) -> None:
    contract = with_draw(contract_for(text), shape)
    difference = [float(run_demo(contract, c, tmp_path).split("difference ")[1].split(",")[0]) for c in (right, wrong)]
    assert difference[0] < 1e-5
    assert difference[1] > 0.1


def test_a_recurrent_layer_without_dropout_draws_nothing_though_it_trains() -> None:
    """cuDNN's recurrent layers carry the tag of random operators whatever their dropout is."""
    import torch

    operator = torch.ops.aten._cudnn_rnn.default
    x = torch.ones(1)
    head = (x, [x], 4, None, x, None, 2, 8, 0, 1, False)
    assert not is_random(operator, (*head, 0.0, True, False, [], None), {})
    assert is_random(operator, (*head, 0.5, True, False, [], None), {})
    assert not is_random(operator, (*head, 0.5, False, False, [], None), {})
