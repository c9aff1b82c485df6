"""A comparison that the user wrote: a function of the reference file that decides instead of the rule of compare.py.

    def NAME(outputs: list[Tensor], expected: list[Tensor]) -> float | bool

gives the greatest error as a multiple of what is allowed (1 and less passes), or whether all is right. `expected` has the
types of the outputs. It gets copies. NaN and infinity fail before it is asked: verification uses finite outputs only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hiera_mcp.sandbox.child.compare import WORST, Expected, finite
from hiera_mcp.sandbox.child.reference import Reference, ReferenceFailed, Unverifiable

ALLOWANCE = 2.0
"""Between two results that both may be off by what is allowed, in opposite ways."""


@dataclass
class Comparison:
    """The user's function, asked on all outputs of a call at once."""

    reference: Reference
    name: str
    passing: dict[tuple[int, str], bool] = field(default_factory=dict[tuple[int, str], bool])
    """Case and kind of trivial answer → whether it has passed in every trial so far."""
    earlier: dict[int, list[Any]] = field(default_factory=dict[int, list[Any]])
    """Case → what was right in its last trial."""

    def error(self, outputs: Sequence[Any], expected: Sequence[Any]) -> float:
        """Greatest error as a multiple of what is allowed; WORST for `False` and for what is not finite.

        Raises:
            ReferenceFailed: the function raises, or gives something else than a number or a bool.
        """
        if not all(finite(t) for t in outputs if t.is_floating_point()):
            return WORST
        answer = self.reference.call(self.name, _copies(outputs), _copies(expected))
        value = answer.item() if hasattr(answer, "item") else answer  # of a tensor, or a NumPy scalar
        if isinstance(value, bool):
            return 0.0 if value else WORST
        if not isinstance(value, int | float):
            raise ReferenceFailed(f"{self.name}() gave a {type(answer).__name__}, not a number or a bool")
        return min(value, WORST) if value >= 0 else WORST  # a NaN is not >= 0

    def fits(self, expected: Sequence[Expected]) -> bool:
        """Whether the reference's own outputs pass."""
        return self.error([e.reference for e in expected], right(expected)) <= 1

    def timed_is_wrong(
        self, case: int, inputs: Sequence[Any], outputs: Sequence[Any], reference: Sequence[Any]
    ) -> bool:
        """Whether a timed call is wrong by what the reference gave for its inputs, and by the oracle too.

        The oracle is asked only then: a function that says True or False knows no allowance for two rounded results.
        """
        if self.error(outputs, reference) <= 1:
            return False
        try:
            oracle = self.reference.oracle_outputs(case, _copies(inputs))
        except (RuntimeError, TypeError, NotImplementedError, MemoryError):
            return self.error(outputs, reference) > ALLOWANCE
        return self.error(outputs, [o.to(r.dtype) for o, r in zip(oracle, reference, strict=True)]) > 1

    def see(self, case: int, expected: Sequence[Expected]) -> None:
        """Try trivial answers: zeros, and what was right in the trial before this one, for other inputs."""
        want = right(expected)
        answers = {"zeros": [t.new_zeros(t.shape) for t in want], "the output for other inputs": self.earlier.get(case)}
        for kind, answer in answers.items():
            if answer is not None:
                passes = self.error(answer, want) <= 1
                self.passing[case, kind] = passes and self.passing.get((case, kind), True)
        self.earlier[case] = want

    def require_told(self) -> None:
        """
        Raises:
            Unverifiable: the function lets a trivial answer pass in every trial of a case.
        """
        for (case, kind), passes in self.passing.items():
            if passes:
                name = self.reference.contract["cases"][case]["name"]
                what = f"{self.name}() lets {kind} pass in every trial of case {name}: it cannot tell right from wrong"
                raise Unverifiable(what, f"Make {self.name}() stricter.")


def comparison_of(reference: Reference) -> Comparison | None:
    """The contract's own comparison; None where the rule decides."""
    name = reference.contract["tolerance"].get("comparison")
    return Comparison(reference, name) if name else None


def right(expected: Sequence[Expected]) -> list[Any]:
    """The oracle's outputs, rounded to the types of the reference's."""
    return [e.oracle.to(e.reference.dtype) for e in expected]


def _copies(tensors: Sequence[Any]) -> list[Any]:
    return [t.clone() for t in tensors]
