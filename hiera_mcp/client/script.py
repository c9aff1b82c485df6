"""What a scripted run does: the task, and for each round the decisions and the candidates. Plain frozen data."""

from pydantic import Field, JsonValue

from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.contract import Precision
from hiera_mcp.model.plan import Strategy
from hiera_mcp.model.space import Direction, Space

RECOMMENDED = "recommended"
"""Let the server's recommendation stand."""


class Submission(Model):
    """One candidate to submit."""

    name: Text
    sources: dict[str, str] = Field(min_length=1)
    """File name → text. A lone source file may have any name; it is submitted under the contract's."""
    parent: str | None = None
    """Name of a candidate of an earlier round that it builds on; by default the best one so far."""
    idea: str = ""


class StrategyText(Model):
    """A strategy as a script states it; space and direction are those of its round."""

    title: Text
    steps: tuple[Text, ...] = Field(min_length=1)
    constraints: tuple[Text, ...] = ()
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    predicted_metric: str = ""
    predicted_change: str = ""
    knowledge: tuple[str, ...] = ()

    def within(self, space: str, direction: str | None) -> Strategy:
        """The strategy for a space and a direction."""
        return Strategy(**dict(self), space=Space(space), direction=Direction(direction) if direction else None)


class Choice(Model):
    """A decision of the script, with its reason."""

    choice: Text = RECOMMENDED
    reason: str = ""


class Round(Model):
    """One round: three decisions, then candidates."""

    space: Choice = Choice()
    direction: Choice = Choice()
    strategy: StrategyText | None = None
    """None: the server's recommendation."""
    strategy_reason: str = ""
    candidates: tuple[Submission, ...] = Field(min_length=1)


class Script(Model):
    """A whole run."""

    name: Text
    source: Text
    """Text of the task file, in KernelBench format."""
    target: Text = "auto"
    precision: Precision = "float32"
    goal: str = ""
    plan: tuple[str, ...] = ()
    """What the planner does without, for ablations: `no-directions`, `fixed-space=cpp`, …"""
    rounds: tuple[Round, ...] = Field(min_length=1)
