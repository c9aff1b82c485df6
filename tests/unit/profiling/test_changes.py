"""From parent to child: only what moved beyond noise, and what became of the prediction."""

from typing import Literal

import pytest

from hiera_mcp.model.profile import Metric, Profile
from hiera_mcp.planning.changes import compare

Origin = Literal["static", "derived", "counter"]
Value = tuple[float | None, Origin, str]


def counter(value: float | None, unit: str = "") -> Value:
    return value, "counter", unit


def profile(**values: Value) -> Profile:
    metrics = [
        Metric(name=name, value=value, unit=unit, origin=origin, reason="" if value is not None else "absent")
        for name, (value, origin, unit) in values.items()
    ]
    return Profile(bottleneck="latency", summary="s", metrics=tuple(metrics))


def before(**more: Value) -> Profile:
    return profile(time=(1e-3, "derived", "s"), ncu_dram_read=(1000.0, "counter", "byte"), **more)


def after(**more: Value) -> Profile:
    return profile(time=(8e-4, "derived", "s"), ncu_dram_read=(1020.0, "counter", "byte"), **more)


def test_a_counter_that_moved_by_less_than_its_noise_is_left_out_and_counted() -> None:
    diff = compare("k_1", before(), after())
    assert [(c.metric, c.better) for c in diff.changes] == [("time", True)]
    assert (diff.unchanged, diff.bottleneck_before) == (1, "latency")


@pytest.mark.parametrize(
    ("metric", "old", "new", "better"),
    [
        ("ncu_bytes_per_sector_load", 4.0, 32.0, True),
        ("ncu_bank_conflicts_load", 0.0, 500.0, False),
        ("ncu_registers", 32.0, 64.0, None),
        ("ncu_local_loads", 900.0, 0.0, True),
    ],
)
def test_a_change_says_whether_it_is_for_the_better_where_that_is_clear(
    metric: str, old: float, new: float, better: bool | None
) -> None:
    diff = compare("k_1", before(**{metric: counter(old)}), after(**{metric: counter(new)}))
    assert next(c.better for c in diff.changes if c.metric == metric) is better


def test_a_small_percentage_that_doubles_is_still_noise() -> None:
    diff = compare("k_1", before(ncu_xu_pipe_pct=(0.5, "counter", "%")), after(ncu_xu_pipe_pct=(1.0, "counter", "%")))
    assert [c.metric for c in diff.changes] == ["time"]


def test_a_register_more_is_no_noise() -> None:
    changes = compare(
        "k_1", before(registers_max=(32.0, "static", "")), after(registers_max=(33.0, "static", ""))
    ).changes
    assert "registers_max" in [c.metric for c in changes]


def test_what_one_of_the_two_does_not_know_is_not_compared() -> None:
    diff = compare("k_1", before(ncu_l2_hit=(None, "counter", "%")), after(ncu_l2_hit=(90.0, "counter", "%")))
    assert "ncu_l2_hit" not in [c.metric for c in diff.changes]


@pytest.mark.parametrize(("metric", "moved"), [("time", True), ("dram_read", False), ("waves", None)])
def test_a_prediction_is_looked_up_by_its_signal_name(metric: str, moved: bool | None) -> None:
    found = compare("k_1", before(), after(), metric, "-20 %").prediction
    assert found is not None and found.moved is moved
    assert (found.reason == "") is (moved is not None)


def test_a_signal_with_another_name_than_its_counter_is_found() -> None:
    old, new = before(ncu_tensor_pipe_pct=(1.0, "counter", "%")), after(ncu_tensor_pipe_pct=(40.0, "counter", "%"))
    found = compare("k_1", old, new, "pipe_tensor", "+30 points").prediction
    assert found is not None and (found.moved, found.before, found.after) == (True, 1.0, 40.0)
