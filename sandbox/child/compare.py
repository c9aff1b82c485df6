"""When is an output right? Errors as fractions of a scale-aware limit (docs/verification.md).

limit_i = max(1, reference_factor · r) · (atol · rms(oracle) + rtol · |oracle_i|)

with r the reference's own greatest error in units of the bracket; stricter where slices of the output are much smaller than
the whole (slices.py). All tensors of one comparison have one shape. Everything runs over chunks, so that no full-size float64
temporaries are needed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hiera_mcp.sandbox.child.slices import Slices, parts, slices_of

CHUNK = 1 << 24
"""Elements per step."""
WORST = 1e30
"""Stands for an infinite error, which JSON cannot carry."""


def in_words(error: float) -> str:
    """An error in multiples of its limit, for people."""
    return f"{error:.3g} times its limit" if error < WORST else "is not finite"


@dataclass(frozen=True)
class Expected:
    """What one output should be."""

    oracle: Any
    """float64 result; the reference's own where there is no oracle, and for integer outputs."""
    reference: Any
    exact: bool
    """Integers and bools must be equal to the reference's."""
    rms: float
    rtol: float
    atol: float
    slack: float
    """max(1, reference_factor · r)."""
    reference_error: float | None
    """r / slack: the reference's own error as a fraction of the limit; null without an oracle."""
    slices: Slices | None = None
    """Stricter limits by slices; None where the whole's scale is the measure."""
    sampled: "Sampled | None" = None
    """The expectation for some rows by a float64 oracle, where the whole is compared with the reference itself."""
    odd: Any | None = None
    """Mask of the elements where infinity or NaN is right (`oracle` has 0 there); None when there are none."""

    def error(self, output: Any) -> float:
        """Greatest error of `output` as a fraction of its element's limit; WORST for a NaN or an infinity that is not
        right, and for a finite value where one of them is."""
        if self.exact:
            return 0.0 if same_bits(output, self.reference) else WORST
        if self.odd is not None:
            if bool((self.odd & ~alike(output, self.reference)).any()):
                return WORST
            output = output.masked_fill(self.odd, 0)
        worst = self.error_of(output, self.oracle)
        if self.sampled is not None:
            worst = max(worst, self.sampled.expected.error(self.sampled.rows(output)))
        return worst if self.slices is None or worst > 1 else max(worst, self._error_by_slices(output, self.slices))

    def _error_by_slices(self, output: Any, slices: Slices) -> float:
        worst = 0.0
        for part in parts(output.shape):
            oracle = self.oracle[part].double()
            ratio = (output[part].double() - oracle).abs() / slices.limit(part, oracle)
            worst = max(worst, float(ratio.nan_to_num(nan=WORST, posinf=WORST).max()))
        return min(worst, WORST)

    def error_of(self, answer: Any, truth: Any) -> float:
        """The same by the whole's scale, for any tensor in place of the output, on a part of the oracle."""
        if self.exact:
            return WORST if bool((answer.to(truth.dtype) != truth).any()) else 0.0
        return min(_greatest(answer, truth, self._bracket) / self.slack, WORST)

    def limit(self, values: Any) -> Any:
        """The limits of elements whose oracle has these values, by the whole's scale, in float64."""
        return self.slack * self._bracket(values.double())

    def failures(self, output: Any) -> Any:
        """Boolean mask of the elements beyond their limit."""
        if self.exact:
            return as_bits(output) != as_bits(self.reference)
        oracle = self.oracle.double()
        limit = self.limit(oracle)
        if self.slices is not None:
            limit = limit.minimum(self.slices.limit((slice(None),), oracle))
        failed = ~((output.double() - oracle).abs() <= limit)
        if self.sampled is not None:
            self.sampled.rows(failed).logical_or_(self.sampled.expected.failures(self.sampled.rows(output)))
        return failed if self.odd is None else failed.where(~self.odd, ~alike(output, self.reference))

    def _bracket(self, oracle: Any) -> Any:
        return (self.atol * self.rms + self.rtol * oracle.abs()).clamp(min=1e-300)


@dataclass(frozen=True)
class Sampled:
    """What is right for the rows from `start` to `stop` of an output."""

    start: int
    stop: int
    expected: Expected

    def rows(self, tensor: Any) -> Any:
        return tensor[self.start : self.stop]


def with_sample(whole: Expected, start: int, stop: int, oracle: Any, tolerance: dict[str, Any]) -> Expected:
    """An expectation that has no oracle, and one on some of its rows.

    Where the reference is the measure, an output may be off by what it may be off from the oracle and by what the
    reference is off; both are known from the rows.
    """
    if whole.exact:
        return whole
    expected = expect(whole.reference[start:stop].contiguous(), oracle, tolerance)
    own = (expected.reference_error or 0.0) * expected.slack
    sampled = Sampled(start, stop, expected)
    return replace(whole, slack=expected.slack + own, reference_error=expected.reference_error, sampled=sampled)


def expect(reference: Any, oracle: Any | None, tolerance: dict[str, Any]) -> Expected:
    """The expectation for one output.

    Args:
        reference: the reference's output in the contract's precision.
        oracle: its float64 output, or None. Where one of them is not finite the other is so too, in the same way (`agree`).
        tolerance: the contract's Tolerance as JSON.
    """
    exact = not reference.is_floating_point()
    truth = reference if oracle is None or exact else oracle
    if exact:
        return Expected(truth, reference, exact, 0.0, tolerance["rtol"], tolerance["atol"], 1.0, None)
    odd = None if finite(truth) else ~truth.isfinite()
    own = reference if odd is None else reference.masked_fill(odd, 0)
    truth = own if oracle is None else truth if odd is None else truth.masked_fill(odd, 0)
    plain = Expected(truth, reference, exact, _rms(truth), tolerance["rtol"], tolerance["atol"], 1.0, None, odd=odd)
    if oracle is None:
        return plain  # what the reference achieves in a slice that cancels is not known: the whole's scale for all
    slices = slices_of(truth, own, plain.rms, _tiny(reference), tolerance)
    error = plain.error_of(own, truth)
    slack = max(1.0, tolerance["reference_factor"] * error)
    return replace(plain, slack=slack, reference_error=error / slack, slices=slices)


def agree(reference: Any, oracle: Any) -> bool:
    """Whether two floating-point outputs are finite at the same places, and elsewhere the same infinity or both NaN."""
    if finite(reference) and finite(oracle):
        return True
    return bool(((reference.isfinite() & oracle.isfinite()) | alike(reference, oracle)).all())


def alike(a: Any, b: Any) -> Any:
    """Mask of the elements that are the same infinity, or both NaN."""
    return (a.isinf() & b.isinf() & (a.sign() == b.sign())) | (a.isnan() & b.isnan())


def finite(tensor: Any) -> bool:
    """Whether there is neither NaN nor infinity in it."""
    return all(bool(part.isfinite().all()) for part in tensor.flatten().split(CHUNK)) if tensor.numel() else True


def same_bits(a: Any, b: Any) -> bool:
    """Whether two contiguous tensors are equal as bytes (so that NaN equals itself)."""
    import torch

    return bool(torch.equal(as_bits(a), as_bits(b)))


def as_bits(tensor: Any) -> Any:
    """The tensor's elements as integers of the same size."""
    import torch

    of_size = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.view(of_size[tensor.element_size()])


def _tiny(tensor: Any) -> float:
    import torch

    return float(torch.finfo(tensor.dtype).tiny)


def _rms(tensor: Any) -> float:
    if not tensor.numel():
        return 0.0
    total = sum(float(part.double().pow(2).sum()) for part in tensor.flatten().split(CHUNK))
    return (total / tensor.numel()) ** 0.5


def _greatest(output: Any, oracle: Any, bracket: Any) -> float:
    worst = 0.0
    for out, truth in _chunks(output, oracle):
        ratio = (out.double() - truth.double()).abs() / bracket(truth.double())
        worst = max(worst, float(ratio.nan_to_num(nan=WORST, posinf=WORST).max()))
    return worst


def _chunks(a: Any, b: Any) -> Iterator[tuple[Any, Any]]:
    if not b.numel():
        return iter(())
    return zip(a.reshape(-1).split(CHUNK), b.reshape(-1).split(CHUNK), strict=True)
