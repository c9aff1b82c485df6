"""Rubrics as data: criteria with weights, anchors in words and the signals they read.

The files are `resources/rubrics/*.yaml`. They are this project's own; HIERA (arXiv 2608.21157) publishes none.
"""

from functools import cache
from importlib.resources import files
from typing import Any, Literal, Self

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from hiera_mcp.errors import RequestError
from hiera_mcp.model.base import Identifier, Model, Text
from hiera_mcp.model.knowledge import SIGNALS
from hiera_mcp.model.plan import DecisionKind

HISTORY = ("candidates_in_run", "decisions_in_run", "earlier_runs", "entry", "signs_in_profile", "source_of_best")
"""What a criterion may read besides signals: records per option of this run and of others, the best candidate's source, and
the knowledge entry itself."""

RUBRICS: tuple[DecisionKind, ...] = ("space", "direction", "strategy")


class Criterion(Model):
    """One question, asked of every option."""

    id: Identifier
    question: Text
    weight: float = Field(gt=0, le=10)
    anchors: dict[int, Text]
    """What each of the scores 0, 1, 2, 3, 4 means, in words."""
    reads: tuple[Text, ...] = Field(min_length=1)
    """Signals (and records of the run) that it reads."""
    gate: str | None = None
    """The gate that overrides this criterion, if any."""

    @field_validator("anchors")
    @classmethod
    def _whole_scale(cls, anchors: dict[int, str]) -> dict[int, str]:
        if sorted(anchors) != [0, 1, 2, 3, 4]:
            raise ValueError("anchors must name exactly the scores 0, 1, 2, 3, 4")
        return anchors

    @field_validator("reads")
    @classmethod
    def _known_signals(cls, reads: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in reads if name not in SIGNALS and name not in HISTORY]
        if unknown:
            raise ValueError(f"unknown evidence: {', '.join(unknown)}")
        return reads


class Gate(Model):
    """A rule that no score can overrule."""

    id: Identifier
    forbids: Text
    """What, and when."""
    effect: Literal["forbids", "needs_reason"]


class Rubric(Model):
    """One rubric. Its version is stored with each decision."""

    kind: DecisionKind
    version: Text
    about: Text
    criteria: tuple[Criterion, ...] = Field(min_length=1)
    gates: tuple[Gate, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        ids = [c.id for c in self.criteria]
        if len(set(ids)) != len(ids):
            raise ValueError("two criteria share an id")
        known = {g.id for g in self.gates}
        for c in self.criteria:
            if c.gate is not None and c.gate not in known:
                raise ValueError(f"criterion {c.id} names the unknown gate {c.gate}")
        return self

    @property
    def label(self) -> str:
        """What a decision stores, for example `space/1`."""
        return f"{self.kind}/{self.version}"

    def criterion(self, criterion_id: str) -> Criterion:
        for c in self.criteria:
            if c.id == criterion_id:
                return c
        raise RequestError(f"No criterion {criterion_id!r} in {self.label}.", valid=[c.id for c in self.criteria])


def parse_rubric(text: str) -> Rubric:
    """The rubric in a YAML text. Raises RequestError that names the field at fault."""
    try:
        data: Any = yaml.safe_load(text)
        return Rubric.model_validate(data)
    except (yaml.YAMLError, ValidationError) as error:
        raise RequestError(f"This is not a rubric: {error}", todo="Correct the YAML file.") from error


def rubric_text(kind: DecisionKind) -> str:
    """The packaged YAML text."""
    return files("hiera_mcp").joinpath("resources", "rubrics", f"{kind}.yaml").read_text(encoding="utf-8")


@cache
def load_rubric(kind: DecisionKind) -> Rubric:
    """The packaged rubric of one kind of decision."""
    return parse_rubric(rubric_text(kind))
