"""Several cases, several inputs, integers, scalars, a reference that changes its inputs, one without an oracle."""

from collections.abc import Callable
from typing import Any

import pytest

from hiera_mcp.model.contract import Contract

pytestmark = pytest.mark.alone

GATHER = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(100, 16)
    def forward(self, index, x, mask):
        return torch.where(mask, self.table(index) + x, x), index.argmax()
def get_inputs():
    return [torch.randint(0, 100, (40,)), torch.randn(40, 16), torch.rand(40, 1) > 0.5]
def get_init_inputs():
    return []
"""

GATHER_CPP = """
#include "contract.h"
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    int64_t best = 0;
    for (int64_t i = 0; i < 40; i++) {
        if (in->x0[i] > in->x0[best]) best = i;
        for (int64_t j = 0; j < 16; j++) {
            float x = in->x1[i * 16 + j];
            out->y0[i * 16 + j] = in->x2[i] ? p->table_weight[in->x0[i] * 16 + j] + x : x;
        }
    }
    *out->y1 = best;
    return 0;
}
"""


def test_integers_bools_and_several_outputs_keep_their_types(
    driver: Any, contract_for: Callable[..., Contract]
) -> None:
    contract = contract_for(GATHER)
    assert [t.dtype for t in contract.cases[0].inputs] == ["int64", "float32", "bool"]
    report = driver.judge(contract, GATHER_CPP)
    assert report.outcome == "passed", report.reason


def test_a_wrong_integer_output_is_caught(driver: Any, contract_for: Callable[..., Contract]) -> None:
    report = driver.judge(contract_for(GATHER), GATHER_CPP.replace("*out->y1 = best", "*out->y1 = best + 1"))
    assert report.outcome == "wrong_output" and "output y1" in report.reason


SUM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
def get_inputs():
    return [torch.rand(32, 128)]
def get_init_inputs():
    return []
"""

SUM_CPP = """
#include "contract.h"
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {
    for (int64_t i = 0; i < HIERA_DIM_x0_0; i++) {
        double s = 0;
        for (int64_t j = 0; j < HIERA_DIM_x0_1; j++) s += in->x0[i * HIERA_DIM_x0_1 + j];
        out->y0[i] = (float)s;
    }
    return 0;
}
"""


def test_every_case_is_verified(driver: Any, contract_for: Callable[..., Contract]) -> None:
    contract = contract_for(SUM, extra_shapes=((8, 1000), (5, 7)))
    report = driver.judge(contract, SUM_CPP)
    assert report.outcome == "passed", report.reason
    assert report.verification.trials == 24
    only_first = SUM_CPP.replace("double s = 0;", "double s = HIERA_CASE == 2 ? 1 : 0;")
    report = driver.judge(contract, only_first)
    assert report.outcome == "wrong_output" and "case case2" in report.reason


def test_a_sum_of_every_other_element_is_caught_by_its_draws(
    driver: Any, contract_for: Callable[..., Contract]
) -> None:
    report = driver.judge(contract_for(SUM), SUM_CPP.replace("j++) s +=", "j += 2) s += 2 *"))
    assert report.outcome == "wrong_output"


def test_a_reference_that_changes_its_inputs_is_noted_and_given_copies(
    driver: Any, contract_for: Callable[..., Contract]
) -> None:
    report = driver.judge(
        contract_for(SUM.replace("return x.sum", "x.mul_(2)\n        return x.sum")),
        SUM_CPP.replace("(float)s", "(float)(2 * s)"),
    )
    assert report.outcome == "passed", report.reason
    assert any("changes its inputs" in n for n in report.verification.notes)


def test_a_reference_that_cannot_run_in_float64_is_its_own_measure(
    driver: Any, contract_for: Callable[..., Contract]
) -> None:
    source = SUM.replace("return x.sum(dim=-1)", "return x @ torch.ones(128, dtype=torch.float32)")
    report = driver.judge(contract_for(source), SUM_CPP)
    assert report.outcome == "passed", report.reason
    assert report.verification.oracle == "reference"
    assert any("float64" in n for n in report.verification.notes)


def test_trials_on_which_the_reference_is_not_finite_are_dropped_and_noted(
    driver: Any, contract_for: Callable[..., Contract]
) -> None:
    source = SUM.replace("x.sum(dim=-1)", "x.log().sum(dim=-1)")
    code = SUM_CPP.replace(
        "s += in->x0[i * HIERA_DIM_x0_1 + j]", "s += std::log((double)in->x0[i * HIERA_DIM_x0_1 + j])"
    )
    report = driver.judge(contract_for(source), "#include <cmath>\n" + code)
    assert report.outcome == "passed", report.reason
    assert any("signed" in n and "dropped" in n for n in report.verification.notes)


def test_a_reference_that_is_never_finite_is_a_failure_of_the_task(
    driver: Any, contract_for: Callable[..., Contract]
) -> None:
    event = driver.ask(contract_for(SUM.replace("x.sum(dim=-1)", "x.sum(dim=-1) / 0")), SUM_CPP)
    assert event["event"] == "failed" and "NaN or infinity" in event["error"]


def test_a_task_that_always_draws_the_same_values_still_gets_new_ones(
    driver: Any, contract_for: Callable[..., Contract]
) -> None:
    contract = contract_for(SUM.replace("torch.rand(32, 128)", "torch.linspace(0, 1, 4096).view(32, 128)"))
    report = driver.judge(contract, SUM_CPP)
    assert report.outcome == "passed", report.reason
    assert any("same values" in n for n in report.verification.notes)
    kept = SUM_CPP.replace(
        "double s = 0;", "static double known[32]; double s = 0; if (known[i]) { out->y0[i] = known[i]; continue; }"
    )
    report = driver.judge(contract, kept.replace("out->y0[i] = (float)s", "out->y0[i] = known[i] = (float)s"))
    assert report.outcome == "wrong_output"
