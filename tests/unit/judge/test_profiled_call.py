"""The judge drives a runner for a profiler: one verified call, one marked call, on cpu some to be sampled, no timing."""

from collections.abc import Callable
from typing import Any

import pytest

from hiera_mcp.model.contract import Contract
from hiera_mcp.model.work import HostCounts, HostSamples

SQUARE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x * x

def get_inputs():
    return [torch.rand(64, 64)]

def get_init_inputs():
    return []
"""
SOURCE = """
#include "contract.h"
static int calls = 0;
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {
    if (++calls > %(most)s) return 99;
    for (int i = 0; i < 64 * 64; i++) out->y0[i] = in->x0[i] * %(factor)s;
    return 0;
}
"""


@pytest.fixture(scope="module")
def square(contract_for: Callable[..., Contract]) -> Contract:
    return contract_for(SQUARE)


def test_calls_are_counted_and_sampled_and_none_is_timed(driver: Any, square: Contract) -> None:
    report = driver.ask(square, SOURCE % {"most": 1 << 30, "factor": "in->x0[i]"}, op="profile")["report"]
    assert (report["outcome"], report["timing"]) == ("passed", None), report["reason"]
    assert report["verification"]["trials"] == 1
    counts, samples = (report[name] for name in ("host_counts", "host_samples"))
    assert HostCounts.model_validate(counts).seconds > 0
    found = HostSamples.model_validate(samples)
    assert bool(found.calls) == bool(found.own) != bool(found.refused)


def test_what_was_counted_remains_when_a_further_call_fails(driver: Any, square: Contract) -> None:
    source = SOURCE % {"most": 3, "factor": "in->x0[i]"}  # twice verified, once marked
    report = driver.ask(square, source, op="profile")["report"]
    assert report["host_counts"] is not None
    assert report["outcome"] == "candidate_error" or report["host_samples"]["refused"]


def test_the_marked_call_comes_after_the_verified_ones(driver: Any, square: Contract) -> None:
    report = driver.ask(square, SOURCE % {"most": 2, "factor": "in->x0[i]"}, op="profile")["report"]
    assert (report["outcome"], report["stage"]) == ("candidate_error", "time")


def test_a_candidate_that_is_wrong_is_not_profiled(driver: Any, square: Contract) -> None:
    report = driver.ask(square, SOURCE % {"most": 3, "factor": "2"}, op="profile")["report"]
    assert report["outcome"] == "wrong_output"
