"""What is recorded beside a time: clocks, temperature, load; and what is said where it cannot be read."""

import ctypes
from typing import Any

import pytest

from hiera_mcp.sandbox.child.conditions import Conditions
from hiera_mcp.sandbox.child.measure import Samples


def test_on_a_processor_the_load_is_recorded_and_its_clock_where_it_is_known() -> None:
    conditions = Conditions("cpu")
    for _ in range(3):
        conditions.look()
    found = conditions.summary()
    assert {f"load_{when}" for when in ("before", "after", "lowest", "highest")} <= set(found)
    assert all(value >= 0 for value in found.values())
    assert not conditions.missing and conditions.limits == ()


def test_a_gpu_that_cannot_be_read_is_named_and_nothing_is_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_library(name: str, *_: Any) -> Any:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", no_library)
    conditions = Conditions("cuda:0")
    conditions.look()
    assert conditions.summary() == {}
    assert "libnvidia-ml.so.1" in conditions.missing


def test_readings_are_summed_up_from_first_to_last(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gpu:
        def __init__(self) -> None:
            self.clocks = [1980.0, 1600.0, 1755.0]

        def readings(self) -> dict[str, float]:
            return {"sm_mhz": self.clocks.pop(0), "temperature_c": 41.0}

        def limits(self) -> tuple[str, ...]:
            return ("software power cap",) if len(self.clocks) == 1 else ()

    conditions = Conditions("cpu")
    monkeypatch.setattr(conditions, "_source", Gpu())
    for _ in range(3):
        conditions.look()
    found = conditions.summary()
    assert [found[f"sm_mhz_{when}"] for when in ("before", "after", "lowest", "highest")] == [1980, 1755, 1600, 1980]
    assert conditions.in_words() == "1600 to 1980 MHz, 41 C, held back by software power cap"


def test_what_the_clock_reads_around_nothing_is_taken_off_and_leaves_something() -> None:
    samples = Samples(overhead=2e-6)
    assert samples.net([5e-6, 1e-6]) == pytest.approx([3e-6, 1e-8])
