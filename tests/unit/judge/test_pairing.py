"""The arithmetic of a session of two candidates."""

import random
from typing import Any

import pytest

from hiera_mcp.sandbox.child.pairing import Pairing, Side, decided, unequal

CALL_S = 1e-3


def side(name: str, seconds: float, left_out: float = 0.0, delay_s: float = 1e-5, rounds: int = 21) -> Side:
    """A side whose calls take `seconds`, of which its claims leave `left_out` out, on a host that delays answers."""
    draw, nothing = random.Random(name), None
    made: Any = Side(name, nothing, nothing, "c_abi")  # type: ignore[arg-type]
    for _ in range(2 * rounds + 2):
        true = seconds * draw.uniform(0.995, 1.005)
        made.samples.candidate.append(true - left_out)
        made.samples.outside.append(true + 2e-4 + draw.expovariate(1 / delay_s))
    return made


def pairing(this: Side, other: Side) -> Pairing:
    return Pairing(None, this, other)  # type: ignore[arg-type]


def test_the_ratio_is_the_others_time_by_this_ones() -> None:
    ratio = pairing(side("this", CALL_S), side("other", 1.03 * CALL_S)).ratio()
    assert ratio["median"] == pytest.approx(1.03, abs=0.005)
    assert ratio["low"] < 1.03 < ratio["high"]
    assert ratio["low"] > 1.01


def test_a_disturbed_call_does_not_count_beside_an_undisturbed_one() -> None:
    this, other = side("this", CALL_S), side("other", CALL_S)
    for n in range(2, len(this.samples.candidate), 2):
        this.samples.candidate[n] *= 5
    assert pairing(this, other).ratio()["median"] == pytest.approx(1.0, abs=0.005)


@pytest.mark.parametrize("delay_s", [1e-5, 5e-3])
def test_honest_claims_are_equal_on_a_quiet_and_on_a_busy_host(delay_s: float) -> None:
    assert unequal(side("this", CALL_S, delay_s=delay_s), side("other", 2 * CALL_S, delay_s=delay_s), "cpu") == []


@pytest.mark.parametrize("liar", ["this", "other"])
def test_a_side_that_claims_less_than_it_took_is_named(liar: str) -> None:
    sides = [side(name, CALL_S, left_out=2e-4 if name == liar else 0.0) for name in ("this", "other")]
    found = unequal(sides[0], sides[1], "cpu")
    assert len(found) == 1 and found[0].startswith(f"{liar}:")


@pytest.mark.parametrize(
    ("low", "high", "ended"),
    [(1.02, 1.05, True), (0.9, 0.98, True), (0.995, 1.005, True), (0.995, 1.05, False), (0.9, 1.1, False)],
)
def test_rounds_go_on_until_there_is_a_difference_or_none_that_matters(low: float, high: float, ended: bool) -> None:
    assert decided({"median": (low + high) / 2, "low": low, "high": high}) is ended
