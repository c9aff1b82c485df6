"""When is an output right? Errors as fractions of a scale-aware limit (docs/verification.md).

limit_i = max(1, reference_factor · r) · (atol · rms(oracle) + rtol · |oracle_i|)

with r the reference's own greatest error in units of the bracket. All tensors of one comparison have one shape.
Everything runs over chunks, so that no full-size float64 temporaries are needed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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

    def error(self, output: Any) -> float:
        """Greatest error of `output` as a fraction of its element's limit; WORST for a NaN or an infinity."""
        if self.exact:
            return 0.0 if same_bits(output, self.reference) else WORST
        return self.error_of(output, self.oracle)

    def error_of(self, answer: Any, truth: Any) -> float:
        """The same for any tensor in place of the output, on a part of the oracle."""
        if self.exact:
            return WORST if bool((answer.to(truth.dtype) != truth).any()) else 0.0
        return min(_greatest(answer, truth, self._bracket) / self.slack, WORST)

    def limit(self, values: Any) -> Any:
        """The limits of elements whose oracle has these values, in float64."""
        return self.slack * self._bracket(values.double())

    def failures(self, output: Any) -> Any:
        """Boolean mask of the elements beyond their limit."""
        if self.exact:
            return as_bits(output) != as_bits(self.reference)
        oracle = self.oracle.double()
        ratio = (output.double() - oracle).abs() / self._bracket(oracle)
        return ~(ratio <= self.slack)

    def _bracket(self, oracle: Any) -> Any:
        return (self.atol * self.rms + self.rtol * oracle.abs()).clamp(min=1e-300)


def expect(reference: Any, oracle: Any | None, tolerance: dict[str, Any]) -> Expected:
    """The expectation for one output.

    Args:
        reference: the reference's output in the contract's precision.
        oracle: its float64 output, or None.
        tolerance: the contract's Tolerance as JSON.
    """
    exact = not reference.is_floating_point()
    truth = reference if oracle is None or exact else oracle
    rms = 0.0 if exact else _rms(truth)
    plain = Expected(truth, reference, exact, rms, tolerance["rtol"], tolerance["atol"], 1.0, None)
    if exact or oracle is None:
        return plain
    own = plain.error(reference)
    slack = max(1.0, tolerance["reference_factor"] * own)
    return Expected(truth, reference, exact, rms, tolerance["rtol"], tolerance["atol"], slack, own / slack)


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
