"""A comparison of the user's own, through the real judge."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from hiera_mcp.contracts.tolerance import given_tolerance
from hiera_mcp.model.contract import Contract

TASK = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x.cos()
def get_inputs():
    return [torch.rand(16, 64)]
def get_init_inputs():
    return []
def judge(outputs, expected):
    {body}
"""
LAX = "return (outputs[0] - expected[0]).abs().max() / 0.05"
RIGHT = """
#include "contract.h"
#include <cmath>
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {
    for (long i = 0; i < HIERA_NUMEL_x0; ++i) out->y0[i] = std::cos(in->x0[i]) + (@);
    return 0;
}
"""


def off_by(error: str) -> str:
    return RIGHT.replace("@", error)


@pytest.fixture
def judged(driver: Any, contract_for: Callable[..., Contract]) -> Callable[..., Any]:
    def judge(body: str, candidate: str, **options: Any) -> Any:
        contract = contract_for(TASK.format(body=body))
        tolerance = given_tolerance(contract.tolerance, None, None, "judge")
        return driver.ask(contract.model_copy(update={"tolerance": tolerance}), off_by(candidate), **options)

    return judge


@pytest.mark.alone
@pytest.mark.parametrize("body", [LAX, "return (outputs[0] - expected[0]).abs().max().item() < 0.05"])
def test_it_decides_instead_of_the_rule(judged: Callable[..., Any], body: str) -> None:
    near = judged(body, "0.04f")["report"]
    assert near["outcome"] == "passed", near["reason"]
    far = judged(body, "0.06f")["report"]
    assert far["outcome"] == "wrong_output"
    assert "judge() refuses the outputs (case case0, trial own #1)" in far["reason"]


def test_the_margin_is_its_figure(judged: Callable[..., Any]) -> None:
    report = judged(LAX, "0.04f")["report"]
    assert report["verification"]["worst"]["error"] == pytest.approx(0.8, rel=1e-3)


def test_timed_calls_are_compared_whole(judged: Callable[..., Any]) -> None:
    """Right as long as it is verified, and wrong in a single element of later calls, which sampling hardly meets."""
    late = "(i == 7 && ++*[]{ static int calls; return &calls; }() > 9) ? 0.5f : 0.0f"
    report = judged(LAX, late)["report"]
    assert report["outcome"] == "wrong_output", report
    assert "judge() refuses the outputs of a timed call" in report["reason"]
    report = judged(LAX, late, protocol="kernelbench")["report"]
    assert "judge() refuses the outputs of a timed call" in report["reason"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return 1 / 0", r"the reference raised ZeroDivisionError in judge\(\)"),
        ("return 'fine'", r"judge\(\) gave a str, not a number or a bool"),
        ("return False", r"judge\(\) refuses the reference's own outputs in trial own #1"),
        ("return float('nan')", r"judge\(\) refuses the reference's own outputs"),
        ("return True", r"judge\(\) lets zeros pass in every trial of case case0"),
    ],
)
def test_its_errors_are_the_references_fault(judged: Callable[..., Any], body: str, expected: str) -> None:
    event = judged(body, "0.0f")
    assert event["event"] == "failed"
    assert re.search(expected, event["error"]), event


def test_what_is_not_finite_is_wrong_whatever_it_says(judged: Callable[..., Any]) -> None:
    body = "return not ((outputs[0] - expected[0]).abs() > 0.05).any()"
    assert judged(body, "i == 3 ? NAN : 0.0f")["report"]["outcome"] == "wrong_output"


@pytest.mark.alone
def test_it_may_change_what_it_gets(judged: Callable[..., Any]) -> None:
    body = "outputs[0].sub_(expected[0]); expected[0].zero_(); return outputs[0].abs().max() / 0.05"
    assert judged(body, "0.0f")["report"]["outcome"] == "passed"
