"""The orchestration texts: one Markdown file per prompt in resources/prompts, with `{name}` for what is filled in."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

Topic = Literal["loop", "ssda", "spa", "oa"]
TOPICS: tuple[Topic, ...] = get_args(Topic)

FILES: dict[Topic, str] = {"loop": "optimize_kernel", "ssda": "ssda", "spa": "spa", "oa": "oa"}


@cache
def guide_text(topic: Topic) -> str:
    """The text of a topic as it is stored."""
    path = files("hiera_mcp").joinpath("resources", "prompts", f"{FILES[topic]}.md")
    return path.read_text(encoding="utf-8")


def loop_text(task: str = "", target: str = "auto", rounds: int = 3, candidates: int = 6, goal: str = "") -> str:
    """The whole loop, for one task or for any."""
    values = {
        "task": task or "the one that the user asks for",
        "target": target,
        "rounds": str(rounds),
        "candidates": str(candidates),
        "goal": goal or "as fast as possible",
    }
    return fill(guide_text("loop"), values)


def topic_text(topic: Topic) -> str:
    """The text of a topic, ready to read."""
    return loop_text() if topic == "loop" else guide_text(topic)


def fill(text: str, values: Mapping[str, str]) -> str:
    """Put values in for `{name}`; everything else in braces stays as it is."""
    return re.sub(r"\{(\w+)\}", lambda m: values.get(m[1], m[0]), text)
