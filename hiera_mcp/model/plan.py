"""Decisions of the planner: scores, evidence, choice and reason (design §8)."""

from typing import Literal

from pydantic import Field, JsonValue

from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.space import Direction, Space

DecisionKind = Literal["space", "direction", "strategy"]


class CriterionScore(Model):
    """One criterion of a rubric, applied to one option."""

    criterion: Text
    weight: float
    score: float | None = Field(ge=0, le=4)
    """0–4 on the rubric's scale; null when the evidence is missing."""
    evidence: dict[str, JsonValue]
    """The values read, by name; null with the reason in `explanation` when absent."""
    explanation: Text


class OptionScore(Model):
    """One option of a decision (a space or a direction) with its total."""

    option: Text
    total: float
    """Weighted mean over the criteria that could be scored, 0–4."""
    criteria: tuple[CriterionScore, ...]
    gates: tuple[str, ...] = ()
    """Gates that forbid this option; a gated option cannot be chosen."""
    overruled: str = ""
    """Reason of the agent, when it overruled the total."""
    techniques: tuple[str, ...] = ()
    """Of the leading directions: entries that fit, the best first, as `slug: title`."""


class Knowledge(Model):
    """A knowledge entry as shown beside a decision."""

    slug: Text
    title: Text
    why: Text
    """Why it is shown for this decision."""


class Strategy(Model):
    """SPA's answer: what will be done to the code, and what must move."""

    title: Text
    space: Space
    direction: Direction | None = None
    """Null in a run that decides none."""
    steps: tuple[Text, ...] = Field(min_length=1)
    constraints: tuple[Text, ...] = ()
    """What must not change, and what is legal on the target."""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    """Chosen numbers: tile sizes, stages, threads per block, …"""
    predicted_metric: str = ""
    """The metric that should move, by its name in a profile, or `time`."""
    predicted_change: str = ""
    """Direction and size, for example `-30 %`."""
    knowledge: tuple[str, ...] = ()
    """Slugs of knowledge entries it rests on."""


class Decision(Model):
    """One recorded decision of a run."""

    kind: DecisionKind
    options: tuple[OptionScore, ...]
    recommended: Text
    choice: Text
    """A space, a direction, or a strategy's title."""
    decided_by: Literal["agent", "server"]
    reason: Text
    knowledge: tuple[Knowledge, ...] = ()
    strategy: Strategy | None = None
    rubric_version: Text
