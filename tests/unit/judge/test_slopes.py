"""Batches of two lengths, answered by a runner whose times are known."""

from typing import Any

import pytest

from hiera_mcp.sandbox.child.clocks import Slope, measure_slope

REQUEST_S, SLICE_S, DELAY_S = 2e-3, 0.5e-3, 1e-3
"""A busy host: what a request takes, and how much later a runner answers that works longer than its turn on a processor."""


class BusyHost:
    """Answers requests for calls of `call_s` seconds that claim `claim_s`."""

    sets = 2

    def __init__(self, call_s: float, claim_s: float) -> None:
        self._call_s, self._claim_s = call_s, claim_s
        self.longest_s = 0.0

    def run(self, case: int, sets: list[int], mode: str) -> tuple[list[float], float]:
        work_s = len(sets) * self._call_s
        self.longest_s = max(self.longest_s, work_s)
        return [len(sets) * self._claim_s], REQUEST_S + work_s + (DELAY_S if work_s > SLICE_S else 0.0)


def slope_of(call_s: float, claim_s: float) -> tuple[Slope, float]:
    bench: Any = BusyHost(call_s, claim_s)
    return measure_slope(bench, claim_s), bench.longest_s


@pytest.mark.parametrize("call_s", [2e-6, 7.7e-6, 98e-6, 3e-3])
def test_an_honest_claim_agrees_on_a_busy_host(call_s: float) -> None:
    slope, _ = slope_of(call_s, call_s)
    assert slope.agrees, slope


@pytest.mark.parametrize("call_s", [7.7e-6, 98e-6, 3e-3])
def test_a_claim_that_leaves_out_a_quarter_disagrees_there_too(call_s: float) -> None:
    slope, _ = slope_of(call_s, 0.75 * call_s)
    assert not slope.agrees, slope


def test_a_claim_of_nothing_makes_no_endless_batch() -> None:
    slope, longest_s = slope_of(0.5, 0.0)
    assert not slope.agrees and longest_s <= 2.0
