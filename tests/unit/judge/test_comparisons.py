"""Two candidates timed against each other in one session, by a real judge and two real runners."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.model.contract import Contract
from hiera_mcp.model.work import PairReport

pytestmark = pytest.mark.alone

TASK = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(1 << 15)]

def get_init_inputs():
    return []
"""


def relu(steps: int, extra: str = "") -> str:
    """y → (x + y) / 2 comes to rest at x long before the last step: more steps change the time alone."""
    return f"""
#include "contract.h"
#include <cstdlib>
int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {{
    const float* x = in->x0;
    float* y = out->y0;
    for (int i = 0; i < (1 << 15); i += 64) {{
        float v[64] = {{}};
        for (int k = 0; k < {steps}; k++)
            for (int j = 0; j < 64; j++) v[j] = 0.5f * v[j] + 0.5f * x[i + j];
        for (int j = 0; j < 64; j++) y[i + j] = v[j] > 0 ? v[j] : 0;
    }}
    static int calls = 0;
    calls++;
    {extra}
    return 0;
}}
"""


@pytest.fixture(scope="module")
def contract(contract_for: Callable[..., Contract]) -> Contract:
    return contract_for(TASK)


@pytest.fixture(scope="module")
def compare(driver: Any, contract: Contract) -> Iterator[Callable[..., PairReport]]:
    def compared(this: str, other: str, compare_s: float = 0.1) -> PairReport:
        return PairReport.model_validate(driver.compare(contract, this, other, compare_s=compare_s)["report"])

    yield compared


def test_twice_the_work_is_told_and_the_ratio_is_seen(compare: Callable[..., PairReport]) -> None:
    report = compare(relu(400), relu(800), compare_s=1.0)
    assert not report.reason and report.ratio is not None
    assert report.rounds >= 11
    assert 1.5 < report.ratio.median < 2.7
    assert report.ratio.low > 1.05


def test_a_candidate_is_not_told_from_itself(compare: Callable[..., PairReport]) -> None:
    report = compare(relu(200), relu(200) + "// the other\n", compare_s=0.5)
    assert not report.reason and report.ratio is not None
    assert report.ratio.low < 1.01 and report.ratio.high > 0.99


@pytest.mark.parametrize("which", [0, 1])
def test_a_failure_in_a_timed_call_says_whose_it_is(compare: Callable[..., PairReport], which: int) -> None:
    codes = [relu(20), relu(20)]
    codes[which] = relu(20, "if (calls > 8) abort();")
    report = compare(*codes)
    assert report.ratio is None
    assert report.reason.startswith(("this candidate:", "the other candidate:")[which])
    assert "ended" in report.reason


def test_a_wrong_output_in_a_timed_call_ends_the_comparison(compare: Callable[..., PairReport]) -> None:
    report = compare(relu(20), relu(20, "if (calls > 8) for (int i = 0; i < (1 << 15); i++) y[i] = 0;"))
    assert report.ratio is None
    assert report.reason.startswith("the other candidate:") and "wrong elements" in report.reason


def test_the_judge_is_fit_for_the_next_one_after_a_failure(
    compare: Callable[..., PairReport], driver: Any, contract: Contract, tmp_path: Path
) -> None:
    compare(relu(20), relu(20, "if (calls > 8) abort();"))
    assert driver.judge(contract, relu(20)).outcome in ("passed", "suspect")
