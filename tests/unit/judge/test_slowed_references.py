"""A reference that was slower beside the candidate than before it was loaded. Pure."""

import pytest

from hiera_mcp.sandbox.child.undisturbed import slowed


@pytest.mark.parametrize("references", [[100e-6, 110e-6] * 9, [90e-6, 95e-6] * 9, [100e-6, 900e-6] + [100e-6] * 16])
def test_times_that_vary_as_those_of_a_gpu_do_say_nothing(references: list[float]) -> None:
    assert slowed(100e-6, references) == ""


def test_a_reference_that_is_slow_in_the_second_call_of_each_round_was_slowed() -> None:
    said = slowed(100e-6, [100e-6, 300e-6] * 9)
    assert "work was left running" in said and "200 us beside the candidate, and 100 us" in said


def test_a_few_microseconds_more_on_a_short_reference_are_the_clocks_own() -> None:
    assert slowed(6e-6, [9e-6] * 18) == ""
