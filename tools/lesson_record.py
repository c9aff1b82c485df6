"""hiera_lesson_record: what a run taught, with its proof."""

from typing import Annotated

from pydantic import Field

from hiera_mcp.model.base import Model
from hiera_mcp.model.space import Direction, Space
from hiera_mcp.tools.base import ADDS, Ctx, Tool, deps_of


class Recorded(Model):
    """A stored lesson."""

    lesson_id: str
    next_step: str


async def hiera_lesson_record(
    title: Annotated[str, Field(min_length=3, max_length=200)],
    text: Annotated[
        str, Field(min_length=10, max_length=8000, description="What was done, what happened, when it applies.")
    ],
    candidate_ids: Annotated[
        list[str], Field(min_length=1, max_length=32, description="Evaluated candidates that prove it.")
    ],
    ctx: Ctx,
    direction: Direction | None = None,
    space: Space | None = None,
) -> Recorded:
    """Record a lesson that later runs should know: what worked, or what did not and why.

    Use it after a surprise and at the end of a run. Each lesson rests on candidates that were evaluated here; claims
    without a candidate are refused. Returns the lesson_id. hiera_knowledge_search finds it again.
    """
    deps = deps_of(ctx)
    lesson = await deps.database(lambda s: s.add_lesson(title, text, candidate_ids, direction, space))
    return Recorded(lesson_id=lesson.id, next_step="hiera_knowledge_search now finds it. Go on with the run.")


TOOL = Tool(hiera_lesson_record, "Record a lesson", ADDS)
