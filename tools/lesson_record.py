"""hiera_lesson_record: what a run taught, with its proof."""

from typing import Annotated

from pydantic import Field

from hiera_mcp.model.base import Model
from hiera_mcp.model.memory import Proof
from hiera_mcp.model.space import Direction, Space
from hiera_mcp.tools.base import ADDS, Ctx, Tool, deps_of
from hiera_mcp.tools.candidate_rows import shortened


class Recorded(Model):
    """A stored lesson."""

    lesson_id: str
    proof: tuple[str, ...]
    """What its candidates showed, as it is kept with the lesson."""
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

    Use it after a surprise and at the end of a run. Each lesson rests on candidates that were evaluated here, in its
    direction and space if it names one; what their evaluations showed is kept with it. Returns the lesson_id and that
    proof. hiera_knowledge_search finds it again.
    """
    deps = deps_of(ctx)
    lesson = await deps.database(lambda s: s.add_lesson(title, text, candidate_ids, direction, space))
    step = "hiera_knowledge_search now finds it. Go on with the run."
    return Recorded(lesson_id=lesson.id, proof=tuple(proof_line(p) for p in lesson.proof), next_step=step)


def proof_line(proof: Proof) -> str:
    """What one candidate showed, in a line: `matmul, cpp, parallelism: passed, 1.31× [1.28, 1.34] on …`."""
    place = ", ".join(part for part in (proof.task, proof.space, proof.direction) if part)
    speedup = proof.speedup
    seen = f"{speedup.median:.3g}× [{speedup.low:.3g}, {speedup.high:.3g}]" if speedup else shortened(proof.reason)
    where = f" on {proof.device}" if proof.device else ""
    return f"{place}: {proof.status}, {seen}{where} ({proof.evaluation_id} of {proof.candidate_id})"


TOOL = Tool(hiera_lesson_record, "Record a lesson", ADDS)
