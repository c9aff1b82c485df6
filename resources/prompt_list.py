"""The prompts: the orchestration texts with typed arguments."""

from collections.abc import Callable
from typing import Annotated, Any

from mcp.server.mcpserver.prompts import Prompt
from pydantic import AfterValidator, Field

from hiera_mcp.guides import Topic, loop_text, topic_text
from hiera_mcp.machine import known_targets

AUTO = "auto"


def check_target(target: str) -> str:
    """`auto`, or a target with hardware facts."""
    valid = (AUTO, *known_targets())
    if target not in valid:
        raise ValueError(f"`{target}` is not a target. Valid: {', '.join(valid)}")
    return target


async def optimize_kernel(
    task: Annotated[str, Field(min_length=1, description="Path of a KernelBench-format file, or what to optimise.")],
    target: Annotated[
        str, AfterValidator(check_target), Field(description="auto, cpu, cuda:sm_80, cuda:sm_90a, …")
    ] = AUTO,
    rounds: Annotated[int, Field(ge=1, le=100, description="Rounds, 1 to 100.")] = 3,
    candidates: Annotated[int, Field(ge=1, le=32, description="Candidates per round, 1 to 32.")] = 6,
    goal: Annotated[str, Field(max_length=2000, description="What is wanted, in words.")] = "",
) -> str:
    """Optimise a kernel by the HIERA method: the whole loop, step by step."""
    return loop_text(task, target, rounds, candidates, goal)


def _role(topic: Topic, description: str) -> Prompt:
    async def role() -> str:
        return topic_text(topic)

    return _prompt(role, topic, topic.upper(), description)


def _prompt(fn: Callable[..., Any], name: str, title: str, description: str | None = None) -> Prompt:
    return Prompt.from_function(fn, name=name, title=title, description=description)


PROMPTS: tuple[Prompt, ...] = (
    _prompt(optimize_kernel, "optimize_kernel", "Optimise a kernel"),
    _role("ssda", "Search-Space Decision Agent: choose space and direction of a round."),
    _role("spa", "Strategy Planning Agent: turn a direction into concrete steps."),
    _role("oa", "Optimization Agent: write the candidates of a round."),
)
