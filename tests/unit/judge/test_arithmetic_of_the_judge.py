"""The pure parts: layout, intervals, limits, poison, values, identity of a contract."""

import math
import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.model.contract import Contract
from hiera_mcp.sandbox.child.clocks import MemoryFloor, Slope, disagreements, memory_floor
from hiera_mcp.sandbox.child.compare import WORST, expect, finite
from hiera_mcp.sandbox.child.degenerate import figures, kinds_of
from hiera_mcp.sandbox.child.draws import DISTRIBUTIONS, distort, perturb, resample
from hiera_mcp.sandbox.child.layout import GUARD, PAGE, lay_out
from hiera_mcp.sandbox.child.measure import Samples
from hiera_mcp.sandbox.child.reference import contract_id
from hiera_mcp.sandbox.child.samples import choose_places
from hiera_mcp.sandbox.child.timing import mean_interval, median_interval, rounds_for
from hiera_mcp.sandbox.child.values import NotPlain, decode, encode
from hiera_mcp.sandbox.child.workbench import poison_pattern

TOLERANCE = {"rtol": 1e-4, "atol": 1e-4, "reference_factor": 4.0}


@given(st.lists(st.integers(0, 10**6), max_size=8))
def test_tensors_are_aligned_apart_and_every_other_byte_is_a_guard(sizes: list[int]) -> None:
    layout = lay_out(sizes)
    assert all(o % PAGE == 0 for o in layout.offsets)
    covered = sorted([*layout.gaps, *((o, o + n) for o, n in zip(layout.offsets, sizes, strict=True))])
    assert covered[0][0] == 0 and covered[-1][1] == layout.total
    assert all(a[1] == b[0] for a, b in pairwise(covered))
    assert all(stop - start >= GUARD for start, stop in layout.gaps)


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=60))
def test_an_interval_holds_its_median(values: list[float]) -> None:
    for interval in (median_interval(values), mean_interval(values)):
        assert interval["low"] <= interval["median"] + 1e-12 and interval["median"] <= interval["high"] + 1e-12


def test_the_median_interval_covers_the_true_median_as_often_as_it_says() -> None:
    draw = random.Random(7)
    hits = 0
    for _ in range(2000):
        interval = median_interval([draw.expovariate(1.0) for _ in range(15)])
        hits += interval["low"] <= math.log(2) <= interval["high"]
    assert 0.94 < hits / 2000 < 0.99


def test_rounds_stay_between_their_bounds() -> None:
    assert [rounds_for(s, 2.0, 7, 41) for s in (1e-9, 0.1, 10.0)] == [41, 20, 7]


def test_the_limit_follows_the_scale_of_the_output_so_tiny_outputs_are_not_replaced_by_zeros() -> None:
    truth = torch.rand(1000, dtype=torch.float64) * 1e-6
    expected = expect(truth.float(), truth, TOLERANCE)
    assert expected.error(truth.float()) < 1
    kinds = kinds_of([1000], [{"name": "x", "shape": [1000]}])
    assert kinds == ("zeros", "constant", "input_echo x", "other_inputs")
    seen = figures(expected, {"x": torch.rand(1000)}, torch.rand(1000) * 1e-6, kinds)
    assert all(figure > 1 for figure in seen.values())


def test_the_limit_is_never_below_the_references_own_error() -> None:
    truth = torch.ones(100, dtype=torch.float64)
    reference = (truth * 1.01).float()
    expected = expect(reference, truth, TOLERANCE)
    assert expected.reference_error == pytest.approx(1 / TOLERANCE["reference_factor"])
    assert expected.error((truth * 0.97).float()) < 1 < expected.error((truth * 0.95).float())


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_one_value_that_is_not_finite_breaks_every_limit(bad: float) -> None:
    truth = torch.rand(50, dtype=torch.float64)
    output = truth.float()
    output[7] = bad
    expected = expect(truth.float(), truth, TOLERANCE)
    assert expected.error(output) == WORST
    assert expected.failures(output).nonzero().tolist() == [[7]]
    assert not finite(output)


def test_integers_must_be_equal() -> None:
    truth = torch.arange(10)
    expected = expect(truth, None, TOLERANCE)
    assert expected.error(truth.clone()) == 0 and expected.error(truth + 1) == WORST


def test_an_empty_output_is_right() -> None:
    empty = torch.empty(0, 3)
    assert expect(empty, empty.double(), TOLERANCE).error(empty) == 0


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_poison_is_a_nan_that_differs_from_draw_to_draw(dtype: str) -> None:
    size = getattr(torch, dtype).itemsize
    view = {8: torch.int64, 4: torch.int32, 2: torch.int16}[size]
    patterns = {poison_pattern(dtype) for _ in range(50)}
    assert len(patterns) > 5
    assert torch.tensor(sorted(patterns), dtype=view).view(getattr(torch, dtype)).isnan().all()


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_distribution_keeps_shape_and_type_and_leaves_integers_alone(distribution: str) -> None:
    x, index = torch.rand(64, 64), torch.randint(0, 9, (5,))
    first, second = distort(distribution, [x, index])
    assert first.shape == x.shape and first.dtype == x.dtype
    assert second is index


def test_default_parameters_move_and_variances_stay_positive_and_masks_stay() -> None:
    assert not torch.equal(perturb("norm.weight", torch.ones(64), False), torch.ones(64))
    assert bool((perturb("norm.bias", torch.zeros(64), False) != 0).all())
    assert bool((perturb("norm.running_var", torch.ones(64), True) > 0).all())
    mask = torch.ones(8, 8).tril()
    assert perturb("mask", mask, True) is mask


def test_places_to_look_at_cannot_be_told_from_the_inputs() -> None:
    output = torch.empty(1 << 20)
    places: list[torch.Tensor] = []
    for _ in range(2):
        torch.manual_seed(1)  # pyright: ignore[reportUnknownMemberType]
        torch.rand(1000)
        places += choose_places([output])
    assert not torch.equal(*places)


def test_resampling_keeps_values_in_the_tasks_own_range() -> None:
    values = torch.randint(3, 7, (10,))
    other = resample(values, (100, 2))
    assert other.shape == (100, 2) and bool(torch.isin(other, values).all())


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(PLAIN)
def test_constructor_arguments_come_back_as_they_were(value: Any) -> None:
    assert decode(encode(value)) == value


def test_small_tensors_cross_and_objects_do_not() -> None:
    tensor = torch.randn(3, 4).to(torch.bfloat16)
    assert torch.equal(decode(encode([tensor]))[0], tensor)
    with pytest.raises(NotPlain, match="object"):
        encode(object())


def test_the_judge_computes_the_same_identity_as_the_model(contract_for: Callable[..., Contract]) -> None:
    source = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
    source += "def get_inputs():\n    return [torch.rand(4)]\ndef get_init_inputs():\n    return []\n"
    contract = contract_for(source, notes=("ünïcode: naïve",))
    assert contract_id(contract.model_dump(mode="json")) == contract.id


def _clocks(claimed: float, outside: float, cold: float, wall: float) -> list[str]:
    slope = Slope(claimed=claimed, outside=outside, noise=1e-6)
    samples = Samples(candidate=[cold] * 9, reference=[1.0], outside=[wall] * 9, empty=[1e-4] * 9, ratios=[1.0])
    return disagreements(slope, samples, MemoryFloor(1e-3, "a table"), "cuda:0")


def test_the_floor_is_that_of_the_device_that_ran_and_not_of_the_target() -> None:
    a100 = {"memory_seconds": 158e-6, "bandwidth": 1.555e12, "basis": "a table"}
    on_h200 = memory_floor(a100, 4.2e12)
    assert on_h200.seconds == pytest.approx(158e-6 * 1.555 / 4.2)
    assert "4.2 TB/s" in on_h200.basis
    assert memory_floor(a100, None) == MemoryFloor(158e-6, "a table")


def test_clocks_that_agree_raise_no_doubt() -> None:
    assert _clocks(claimed=2e-3, outside=2.05e-3, cold=2.2e-3, wall=2.4e-3) == []


def test_a_claim_above_what_the_judge_sees_gains_nothing_and_raises_no_doubt() -> None:
    assert _clocks(claimed=3e-3, outside=2e-3, cold=3e-3, wall=2.4e-3) == []


def test_each_clock_can_raise_a_doubt_of_its_own() -> None:
    assert "in batches" in _clocks(claimed=1e-3, outside=2e-3, cold=2.2e-3, wall=2.4e-3)[0]
    assert "one cold call" in _clocks(claimed=2e-3, outside=2e-3, cold=0.9e-3, wall=2.4e-3)[0]
    assert "moving the data alone" in _clocks(claimed=2e-3, outside=2e-3, cold=0.4e-3, wall=0.5e-3)[0]
