"""Spot checks of timed calls: a few random elements, taken the moment the runner answers, compared later."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hiera_mcp.sandbox.child.compare import alike
from hiera_mcp.sandbox.child.draws import secret_seed
from hiera_mcp.sandbox.child.slices import ROUNDING, scales_at

SAMPLE = 1024
"""Elements per output."""
ALLOWANCE = 2.0
"""The reference's own result is the measure here, not the oracle: both may be off by the limit, in opposite ways."""


@dataclass(frozen=True)
class Sample:
    """Elements of the outputs of one timed call."""

    places: list[Any]
    """One index tensor per output, into the flattened output; empty: the outputs are whole."""
    values: list[Any]


def choose_places(outputs: Sequence[Any]) -> list[Any]:
    """Random places, drawn before the call so that nothing stands between the answer and the look.

    By a generator of their own: the one that inputs come from is linear on a processor, so whoever knows enough of its numbers can
    compute the next ones.
    """
    import torch

    found: list[Any] = []
    for t in outputs:
        source = torch.Generator(device=t.device)
        source.manual_seed(secret_seed())
        found.append(torch.randint(max(1, t.numel()), (min(SAMPLE, t.numel()),), device=t.device, generator=source))
    return found


def take(outputs: Sequence[Any], places: list[Any]) -> Sample:
    """Copy the elements."""
    return Sample(places, [t.view(-1)[p] for t, p in zip(outputs, places, strict=True)])


def whole(outputs: Sequence[Any]) -> Sample:
    """Copy all of the outputs, with their shapes."""
    return Sample([], [t.clone() for t in outputs])


@dataclass(frozen=True)
class Leeway:
    """How far the elements of one output of a timed call may be off.

    Attributes:
        slack: the greatest that verification met (compare.Expected.slack).
        sliced: whether it met slices that are much smaller than the whole (slices.py).
        tolerance: the contract's.
    """

    slack: float
    sliced: bool
    tolerance: dict[str, Any]

    def limits(self, truth: Any, place: Any, want: Any) -> Any:
        """Of the elements `want`, which lie at `place` in the flattened `truth`."""
        rms = float(truth.double().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).pow(2).mean().sqrt())
        atol, relative = self.tolerance["atol"], self.tolerance["rtol"] * want.double().abs()
        limit = self.slack * (atol * rms + relative)
        if self.sliced and math.isfinite(rms) and bool(truth.isfinite().all()):
            scale = (atol * scales_at(truth, place, rms)).clamp(min=min(atol, ROUNDING) * rms)
            limit = limit.minimum(max(self.slack, self.tolerance["reference_factor"]) * (scale + relative))
        return ALLOWANCE * limit.clamp(min=1e-300)


def wrong_elements(sample: Sample, reference: Sequence[Any], leeways: Sequence[Leeway]) -> int:
    """How many sampled elements disagree with the reference's outputs on the same inputs."""
    rows = zip(sample.places, sample.values, reference, leeways, strict=True)
    return sum(_wrong(value, truth, place, leeway) for place, value, truth, leeway in rows)


def _wrong(value: Any, truth: Any, place: Any, leeway: Leeway) -> int:
    want = truth.reshape(-1)[place]
    if not truth.is_floating_point():
        return int((value != want).sum())
    if not truth.numel():
        return 0
    near = ((value.double() - want.double()).abs() <= leeway.limits(truth, place, want)) & want.isfinite()
    return int((~(near | alike(value, want))).sum())
