"""How a rubric is applied: each criterion is one small function of a view on the evidence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pydantic import JsonValue

from hiera_mcp.model.plan import CriterionScore, OptionScore
from hiera_mcp.planning.evidence import Evidence
from hiera_mcp.planning.rubrics import Criterion, Rubric
from hiera_mcp.planning.signals import read

Option = TypeVar("Option")


class Missing(Exception):
    """A criterion cannot be scored: what is missing, and why. `apply` turns it into a null score."""


@dataclass(frozen=True)
class Answer:
    """A score between 0 and 4 and the sentence that explains it."""

    score: float
    why: str
    share: float = 1.0
    """Of the criterion's weight, between 0 and 1: less where little is known."""


@dataclass(frozen=True)
class View(Generic[Option]):
    """The evidence as one criterion sees it for one option. Remembers every value read, so that it can be quoted."""

    evidence: Evidence
    option: Option
    seen: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    def number(self, name: str) -> float:
        """A numeric signal. Raises Missing with the reason when there is none."""
        value = self._read(name)
        if isinstance(value, str):
            raise TypeError(f"signal {name} is text")
        return float(value)

    def text(self, name: str) -> str:
        return str(self._read(name))

    def flag(self, name: str) -> bool:
        return bool(self._read(name))

    def known(self, name: str) -> bool:
        """Whether the signal has a value; it is quoted either way."""
        self.seen[name] = _short(read(self.evidence, name).value)
        return self.seen[name] is not None

    def quote(self, name: str, value: JsonValue) -> None:
        """Add a record of the run to the values quoted."""
        self.seen[name] = value

    def _read(self, name: str) -> float | str | bool:
        reading = read(self.evidence, name)
        self.seen[name] = _short(reading.value)
        if reading.value is None:
            raise Missing(f"{name} is unknown: {reading.reason}")
        return reading.value


Scorer = Callable[[View[Option]], Answer]


def apply(rubric: Rubric, scorers: Mapping[str, Scorer[Option]], evidence: Evidence, option: Option) -> OptionScore:
    """All criteria of a rubric for one option. Gates are added by the caller."""
    rows = tuple(_score(c, scorers[c.id], View(evidence, option)) for c in rubric.criteria)
    return OptionScore(option=str(option), total=weighted_mean(rows), criteria=rows)


def weighted_mean(rows: Sequence[CriterionScore]) -> float:
    """Mean over the criteria that could be scored; 0 when none could."""
    scored = [(row.weight, row.score) for row in rows if row.score is not None]
    weight = sum(w for w, _ in scored)
    return round(sum(w * s for w, s in scored) / weight, 3) if weight else 0.0


def grade(value: float, thresholds: tuple[float, float, float, float]) -> int:
    """How many of four rising thresholds the value has reached: 0 to 4."""
    return sum(value >= t for t in thresholds)


def _score(criterion: Criterion, scorer: Scorer[Option], view: View[Option]) -> CriterionScore:
    try:
        answer = scorer(view)
        score, why = round(min(4.0, max(0.0, answer.score)), 2), answer.why
        weight = round(criterion.weight * min(1.0, max(0.0, answer.share)), 3)
    except Missing as missing:
        score, why, weight = None, f"Not scored: {missing}.", criterion.weight
    return CriterionScore(criterion=criterion.id, weight=weight, score=score, evidence=view.seen, explanation=why)


def _short(value: float | str | bool | None) -> JsonValue:
    """Four significant digits are enough to quote."""
    return float(f"{value:.4g}") if isinstance(value, float) else value
