"""What the judge's clock makes of claims, on numbers by hand. In seconds."""

import pytest

from hiera_mcp.sandbox.child.measure import Samples
from hiera_mcp.sandbox.child.outside_clock import (
    bear_out,
    bear_out_warm,
    implausible,
    kept,
    series_implausible,
    unraised,
)
from hiera_mcp.sandbox.child.rehearsal import Rehearsal

COST = 400e-6
WOBBLE = [0.0, 10e-6, 20e-6, 5e-6, 15e-6, 8e-6, 12e-6]


def samples(call: float, claim: float) -> Samples:
    """Calls that take `call` and claim `claim`, on a host whose requests cost COST and vary by up to 20 us."""
    return Samples(
        candidate=[claim] * 14,
        reference=[1e-3] * 14,
        outside=[call + COST + w for w in WOBBLE * 2],
        empty=[COST + w for w in WOBBLE],
        rehearsed=[COST + w for w in WOBBLE],
        ratios=[1e-3 / claim] * 7,
    )


def test_honest_claims_stay_as_they_are() -> None:
    honest = samples(1e-3, 1e-3)
    bear_out(honest)
    assert honest.candidate == [1e-3] * 14 and honest.ratios == pytest.approx([1.0] * 7)
    assert implausible(honest) == []


def test_a_claim_wins_no_more_than_what_requests_vary_by() -> None:
    cut = samples(1e-3, 0.8e-3)
    bear_out(cut)
    assert min(cut.candidate) >= 1e-3 - 40e-6 and max(cut.ratios) < 1.05


def test_one_uncut_call_in_three_does_not_save_the_others() -> None:
    cut = samples(1e-3, 0.5e-3)
    cut.candidate[::3] = [1e-3] * len(cut.candidate[::3])
    bear_out(cut)
    assert sorted(cut.candidate)[7] >= 1e-3 - 40e-6


def test_a_cold_call_counts_at_least_what_a_warm_one_takes() -> None:
    cut = samples(30e-6, 1e-6)
    bear_out_warm(cut, 20e-6)
    assert cut.candidate == pytest.approx([18e-6] * 14)
    honest = samples(30e-6, 30e-6)
    bear_out_warm(honest, 20e-6)
    assert honest.candidate == [30e-6] * 14


def test_what_a_warm_delivery_takes_is_no_part_of_a_call() -> None:
    cut = samples(30e-6, 1e-6)
    cut.delivery, cut.warm_delivery = 300e-6, 10e-6
    bear_out_warm(cut, 30e-6)
    assert cut.candidate == pytest.approx([18e-6] * 14)
    assert unraised(cut) == pytest.approx(30e-6)


def test_the_cost_of_several_sets_lies_between_that_of_one_and_of_all() -> None:
    rehearsal = Rehearsal([90e-6, 100e-6, 900e-6], [400e-6], sets=16)
    assert rehearsal.cost(1) == pytest.approx(100e-6)
    assert rehearsal.cost(6) == pytest.approx(200e-6)
    assert rehearsal.cost(16) == pytest.approx(400e-6)
    assert Rehearsal([100e-6], [90e-6], sets=1).cost(1) == pytest.approx(100e-6)


def test_claims_that_leave_most_out_are_not_credible_and_the_reason_says_how_much() -> None:
    (reason,) = implausible(samples(2e-3, 1e-3))
    assert "claims 1000 us" in reason and "us more" in reason


def test_slow_requests_between_the_calls_excuse_little() -> None:
    cut = samples(2e-3, 0.5e-3)
    cut.empty = [2e-3] * 7
    assert implausible(cut)


def test_a_neighbour_that_delays_most_answers_makes_no_claim_implausible() -> None:
    honest = samples(1e-3, 1e-3)
    honest.outside = [t if n < 3 else t + 5e-3 for n, t in enumerate(honest.outside)]
    assert implausible(honest) == []


def test_many_calls_of_one_request_must_fill_its_time() -> None:
    honest = Samples(candidate=[1e-3] * 100, together=0.1005)
    assert series_implausible(honest) == []
    assert series_implausible(Samples(candidate=[0.5e-3] * 100, together=0.1005))


def test_calls_on_the_same_inputs_that_are_much_quicker_than_others_keep_their_results() -> None:
    (reason,) = kept(samples(1e-3, 20e-6), 1e-3)
    assert "results are kept" in reason
    warm = samples(1e-3, 300e-6)
    assert kept(warm, 1e-3) == [] and kept(samples(1e-3, 1e-6), 100e-6) == []
