"""When is an output right whose rows, channels or columns differ much in scale; and one with infinities at known places?

Honest results are computed in another order or another precision of the contract; dishonest ones leave work out.
"""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hiera_mcp.sandbox.child.compare import WORST, Expected, agree, expect
from hiera_mcp.sandbox.child.draws import seeded
from hiera_mcp.sandbox.child.samples import Leeway, Sample, wrong_elements
from hiera_mcp.sandbox.child.slices import fold, parts, slice_dims

SINGLE = {"rtol": 1e-4, "atol": 1e-4, "reference_factor": 4.0}
HALF = {"rtol": 1e-2, "atol": 1e-2, "reference_factor": 4.0}


@pytest.fixture(autouse=True)
def seed() -> None:
    seeded(11)


def product(x: torch.Tensor, w: torch.Tensor, tolerance: dict[str, float] = SINGLE) -> Expected:
    """What x @ w should be."""
    return expect(x @ w, x.double() @ w.double(), tolerance)


def in_pieces(x: torch.Tensor, w: torch.Tensor, pieces: int = 8) -> torch.Tensor:
    """The same product in another order: partial sums over parts of the inner dimension."""
    return sum((a @ b for a, b in zip(x.chunk(pieces, 1), w.chunk(pieces, 0), strict=True)), torch.zeros(1))


@pytest.mark.parametrize("factor", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("which", ["row", "column", "both"])
def test_a_slice_much_smaller_than_the_rest_cannot_be_left_out(which: str, factor: float) -> None:
    x, w = torch.randn(96, 512), torch.randn(512, 80)
    if which != "column":
        x[5] *= factor
    if which != "row":
        w[:, 7] *= factor
    expected, honest = product(x, w), in_pieces(x, w)
    assert expected.error(honest) <= 1
    left_out = honest.clone()
    (left_out[5] if which == "row" else left_out[:, 7]).zero_()
    assert expected.error(left_out) > 1
    assert bool(expected.failures(left_out).any()) and not bool(expected.failures(honest).any())


def test_five_percent_of_a_small_channel_are_seen() -> None:
    x = torch.randn(4, 16, 12, 12)
    x[:, 3] *= 1e-4
    expected = expect(x.clone(), x.double(), SINGLE)
    off = x.clone()
    off[:, 3] *= 1.05
    assert expected.error(x) == 0 and expected.error(off) > 1 > expected.error_of(off, expected.oracle)


def test_a_noisy_slice_of_the_reference_loosens_no_other_one() -> None:
    truth = torch.randn(128, 128, dtype=torch.float64)
    truth[:64] *= 1e-3
    reference = truth.float()
    reference[3] *= 60
    expected = expect(reference, truth, SINGLE)
    output = truth.float()
    output[90] *= 1.1
    assert expected.error_of(output, expected.oracle) < 1 < expected.error(output)
    assert expected.error(truth.float()) < 1


def test_a_dead_channel_may_hold_rounding_and_nothing_more() -> None:
    x = torch.rand(8, 16, 32)
    x[:, 2] = 0
    expected = expect(x.clone(), x.double(), SINGLE)
    rounding, wrong = x.clone(), x.clone()
    rounding[:, 2] += 1e-8
    wrong[:, 2] += 1e-3
    assert expected.error(rounding) <= 1 < expected.error(wrong)


def test_a_channel_that_an_activation_has_almost_cut_off_is_measured_by_the_whole() -> None:
    x = torch.rand(8, 16, 100)
    x[:, 2] = torch.relu(x[:, 2] - 0.98) * 1e-2
    expected, off = expect(x.clone(), x.double(), SINGLE), x.clone()
    assert 0 < int((x[:, 2] > 0).sum()) < 64
    off[:, 2] += 1e-5
    assert expected.error(off) <= 1


def test_what_is_below_the_smallest_normal_number_may_be_flushed() -> None:
    x = torch.rand(64, 64)
    x[1] = 1e-41
    flushed = x.clone()
    flushed[1] = 0
    assert expect(x.clone(), x.double(), SINGLE).error(flushed) <= 1


@pytest.mark.parametrize(
    "tolerance_and_type", [(HALF, torch.bfloat16), (HALF, torch.float16)], ids=["bfloat16", "float16"]
)
def test_half_precision_is_judged_by_slices_too(tolerance_and_type: tuple[Any, Any]) -> None:
    tolerance, dtype = tolerance_and_type
    x, w = torch.randn(96, 256).to(dtype), torch.randn(256, 80).to(dtype)
    x[5] *= 1e-3
    expected = product(x, w, tolerance)
    honest = (x.float() @ w.float()).to(dtype)
    left_out = honest.clone()
    left_out[5] = 0
    assert expected.error(honest) <= 1 < expected.error(left_out)


def test_a_sum_of_a_million_may_be_ordered_at_will_but_not_cut_short() -> None:
    x = torch.rand(4, 1_000_000)
    expected = expect(x.sum(1), x.double().sum(1), SINGLE)
    blocks = x.view(4, 1000, 1000).sum(2).sum(1)
    in_a_row = x.view(4, 100, 10_000).transpose(1, 2).cumsum(2)[:, :, -1].cumsum(1)[:, -1]
    assert expected.error(blocks) <= 1 and expected.error(in_a_row) <= 1
    assert expected.error(x[:, :999_000].sum(1)) > 1
    assert expected.error(x.bfloat16().float().cumsum(1)[:, -1].bfloat16().float()) > 1


def test_outputs_near_zero_by_cancellation_get_what_the_reference_achieves_and_no_more() -> None:
    x = torch.randn(64, 4096) * 1000
    y = x.flip(1).contiguous()

    def cancelled(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x.sum(1) - y.sum(1)) + 1e-3 * x[:, 0]

    expected = expect(cancelled(x, y), cancelled(x.double(), y.double()), SINGLE)
    other_order = (x.view(64, 64, 64).sum(1).sum(1) - y.view(64, 64, 64).sum(1).sum(1)) + 1e-3 * x[:, 0]
    assert expected.error(other_order) <= 1
    assert expected.error(cancelled(x.half().float(), y.half().float()) * 0) > 1


@given(st.integers(1, 5), st.integers(1, 40), st.integers(1, 40), st.floats(-6, 0))
@settings(max_examples=40, deadline=None)
def test_limits_by_slices_are_never_wider_than_those_of_the_whole(a: int, b: int, c: int, power: float) -> None:
    truth = torch.randn(a, b, c, dtype=torch.float64)
    truth[:, 0] *= 10**power
    reference = (truth * (1 + 1e-5 * torch.randn(a, b, c))).float()
    output = (truth * (1 + 1e-4 * torch.randn(a, b, c))).float()
    expected = expect(reference, truth, SINGLE)
    assert expected.error(output) >= expected.error_of(output, expected.oracle)
    assert expected.error(reference) <= 1
    assert bool(expected.failures(output).any()) == (expected.error(output) > 1)


@pytest.mark.parametrize("chunk", [1, 7, 100, 10_000])
def test_folds_do_not_depend_on_how_a_tensor_is_cut(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hiera_mcp.sandbox.child.slices.CHUNK", chunk)
    x = torch.rand(5, 9, 13, dtype=torch.float64)
    dims = slice_dims((50, 9, 13))
    added, greatest = (fold(x.shape, dims, x.__getitem__, how) for how in ("sum", "amax"))
    for d in dims:
        others = [k for k in range(3) if k != d]
        assert torch.allclose(added[d], x.sum(others)) and torch.equal(greatest[d], x.amax(others))
    assert sum(x[part].numel() for part in parts(x.shape)) == x.numel()


def masked(value: float) -> torch.Tensor:
    scores = torch.randn(48, 48)
    return scores.masked_fill(torch.ones(48, 48).triu(1).bool(), value)


@pytest.mark.parametrize("value", [-math.inf, math.inf, math.nan])
def test_infinity_and_nan_are_right_where_reference_and_oracle_have_them(value: float) -> None:
    truth = masked(value)
    expected = expect(truth.clone(), truth.double(), SINGLE)
    finite, elsewhere, wrong = (truth.clone() for _ in range(3))
    finite[0, 5] = -1e30
    elsewhere[5, 0] = value
    wrong[5, 0] += 1
    assert agree(truth, truth.double()) and expected.error(truth) == 0
    assert not bool(expected.failures(truth).any())
    for output, place in ((finite, [0, 5]), (elsewhere, [5, 0]), (wrong, [5, 0])):
        assert expected.error(output) > 1
        assert expected.failures(output).nonzero().tolist() == [place]
    if not math.isnan(value):
        assert expected.error(-truth) == WORST


def test_an_overflow_of_the_reference_alone_does_not_agree() -> None:
    assert not agree(torch.tensor([1.0, math.inf]), torch.tensor([1.0, 1e39], dtype=torch.float64))
    assert not agree(torch.tensor([math.inf]), torch.tensor([-math.inf], dtype=torch.float64))
    assert not agree(torch.tensor([math.nan]), torch.tensor([math.inf], dtype=torch.float64))


def test_a_small_row_of_a_timed_call_is_judged_by_its_own_scale_where_such_rows_were_met() -> None:
    truth = torch.randn(64, 256)
    truth[3] *= 1e-5
    places, off = torch.arange(truth.numel()), truth.clone()
    off[3] = 0

    def wrong(output: torch.Tensor, sliced: bool) -> int:
        return wrong_elements(Sample([places], [output.reshape(-1)]), [truth], [Leeway(1.0, sliced, SINGLE)])

    assert wrong(off, sliced=False) == 0
    assert wrong(off, sliced=True) > 200
    assert wrong(truth * (1 + 1e-6), sliced=True) == 0


def test_timed_calls_are_judged_beside_infinities() -> None:
    truth = masked(-math.inf)
    places = torch.arange(truth.numel())

    def wrong(output: torch.Tensor) -> int:
        return wrong_elements(Sample([places], [output.reshape(-1)]), [truth], [Leeway(1.0, False, SINGLE)])

    off = truth.clone()
    off[5, 0] += 1
    off[0, 5] = 0
    assert wrong(truth.clone()) == 0 and wrong(off) == 2
