"""The judge's own clock on cold calls: batches that a runner answers in known times. Pure but for the runner's part."""

from typing import Any

import pytest
import torch

from hiera_mcp.sandbox.child.cold_clock import FILLS, cold_call, cold_doubt, doubt
from hiera_mcp.sandbox.child.measure import Samples


class Bench:
    """Answers as a runner whose requests take 100 us, flushes 40 us and calls `call_s`; where the host needs longer for a
    call than device and flush do, its time counts."""

    sets = 2

    def __init__(self, call_s: float, host_s: float = 0.0) -> None:
        self._call_s = call_s
        self._host_s = host_s
        self.batches = 0

    def put(self, case: int, s: int, inputs: list[Any]) -> None:
        pass

    def cold_batch(self, case: int, sets: list[int], calls: bool, fills: int) -> float:
        self.batches += 1
        device_s = fills * 40e-6 + (self._call_s if calls else 0.0)
        return 100e-6 + len(sets) * max(device_s, self._host_s if calls else 0.0)


class Course:
    def reference_call(self, inputs: list[Any], flush: bool) -> tuple[list[Any], float]:
        return inputs, 0.0

    def check_outputs(self, s: int, expected: list[Any], inputs: list[Any]) -> None:
        pass


class Reference:
    def draw_inputs(self, case: int) -> list[Any]:
        return [torch.ones(1)]


COURSE: Any = Course()
REFERENCE: Any = Reference()


def samples(call_s: float, claimed: float) -> Samples:
    return Samples(candidate=[claimed] * 9, outside=[call_s + 150e-6] * 9, empty=[150e-6] * 9)


def outside(call_s: float, claimed: float) -> tuple[float, int]:
    bench: Any = Bench(call_s)
    return cold_call(REFERENCE, bench, COURSE, samples(call_s, claimed), call_s / 2, 2), bench.batches


@pytest.mark.parametrize("call_s", [2e-6, 35e-6, 1e-3])
def test_requests_and_flushes_cancel_out(call_s: float) -> None:
    assert outside(call_s, call_s)[0] == pytest.approx(call_s)


def test_a_long_call_is_told_without_batches() -> None:
    seconds, batches = outside(0.5, 0.5)
    assert seconds == pytest.approx(0.5) and not batches


def test_a_claim_may_be_a_little_below_and_as_far_above_as_it_likes() -> None:
    assert doubt([33e-6, 34e-6, 35e-6], 36e-6) == ""
    assert doubt([90e-6] * 3, 36e-6) == ""
    assert doubt([1e-6] * 3, 3.5e-6) == ""
    assert doubt([38e-6] * 3, 51e-6) == "" and doubt([6e-6] * 3, 36e-6, python=True) == ""


def test_a_claim_that_leaves_out_a_third_is_doubted_and_both_numbers_are_told() -> None:
    assert "claims 21 us for one cold call, the judge's clock outside says 35 us" in doubt([21e-6] * 9, 35e-6)


def test_a_host_that_needs_longer_than_flush_and_call_is_no_reason_for_doubt() -> None:
    bench: Any = Bench(6e-6, host_s=140e-6)
    assert cold_call(REFERENCE, bench, COURSE, samples(6e-6, 6e-6), 6e-6, 2) == pytest.approx(60e-6)
    assert cold_doubt(REFERENCE, bench, COURSE, samples(6e-6, 6e-6), 6e-6, python=False) == ""


@pytest.mark.parametrize("host_s", [0.0, 140e-6, FILLS * 40e-6])
def test_a_false_claim_is_doubted_however_busy_the_host_is(host_s: float) -> None:
    bench: Any = Bench(60e-6, host_s)
    assert "claims 20 us" in cold_doubt(REFERENCE, bench, COURSE, samples(60e-6, 20e-6), 30e-6, python=False)
