"""A reference whose right answer holds infinities at known places is judged: they must be there, and nowhere else."""

from collections.abc import Callable
from typing import Any

import pytest

from hiera_mcp.model.contract import Contract

MASKED = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return (x * x + x).masked_fill(torch.ones(96, 96, device=x.device).triu(1).bool(), float("-inf"))

def get_inputs():
    return [torch.rand(96, 96)]

def get_init_inputs():
    return []
"""
SOURCE = """
#include "contract.h"
#include <math.h>
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {
    for (int i = 0; i < 96; i++)
        for (int j = 0; j < 96; j++) {
            float x = in->x0[i * 96 + j];
            out->y0[i * 96 + j] = j <= i ? x * x + x : %s;
        }
    return 0;
}
"""


@pytest.fixture(scope="module")
def masked(contract_for: Callable[..., Contract]) -> Contract:
    return contract_for(MASKED)


@pytest.mark.alone
def test_infinities_where_they_belong_are_right(driver: Any, masked: Contract) -> None:
    report = driver.judge(masked, SOURCE % "-INFINITY")
    assert report.outcome == "passed", report.reason
    assert report.verification.oracle == "float64"


@pytest.mark.parametrize("value", ["-1e30f", "INFINITY", "NAN"])
def test_any_other_value_in_their_place_is_wrong(driver: Any, masked: Contract, value: str) -> None:
    report = driver.judge(masked, SOURCE % value)
    assert report.outcome == "wrong_output" and "instead of -inf" in report.reason, report.reason
