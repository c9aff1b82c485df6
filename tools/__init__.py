"""What an agent can do: one file per tool or family, one explicit list."""

from hiera_mcp.tools import (
    artifact_read,
    candidate_check,
    candidate_profile,
    candidates_evaluate,
    contract_build,
    guide,
    job,
    knowledge_search,
    lesson_record,
    plan,
    run,
)
from hiera_mcp.tools.base import Tool

ALL: tuple[Tool, ...] = (
    guide.TOOL,
    contract_build.TOOL,
    run.START,
    run.STATUS,
    plan.SPACE,
    plan.DIRECTION,
    plan.STRATEGY,
    candidate_check.TOOL,
    candidates_evaluate.TOOL,
    candidate_profile.TOOL,
    run.FINISH,
    knowledge_search.TOOL,
    lesson_record.TOOL,
    job.TOOL,
    artifact_read.TOOL,
)
"""In the order of the loop."""

__all__ = ["ALL", "Tool"]
