"""hiera_guide: the orchestration texts, for clients without prompts."""

from hiera_mcp.guides import Topic, topic_text
from hiera_mcp.model.base import Model
from hiera_mcp.tools.base import READS, Tool

NEXT: dict[Topic, str] = {
    "loop": "Call hiera_contract_build(source=..., name=...), or path=... for a file on the server's host.",
    "ssda": "Call hiera_plan_space(run_id=...) without choice to see the evidence.",
    "spa": "Call hiera_plan_strategy(run_id=...) without strategy to see techniques.",
    "oa": "Write the candidates and call hiera_candidates_evaluate(run_id=..., candidates=[...]).",
}


class Guide(Model):
    """One text."""

    topic: Topic
    text: str
    next_step: str


async def hiera_guide(topic: Topic = "loop") -> Guide:
    """How to optimise a kernel with this server: the whole loop, or one role in it.

    Call it first, once, if your client has no prompts. Topics: loop (the whole optimisation, step by step), ssda (how
    to choose space and direction), spa (how to plan a strategy), oa (how to write candidates). Returns the text.
    Next: hiera_contract_build.
    """
    return Guide(topic=topic, text=topic_text(topic), next_step=NEXT[topic])


TOOL = Tool(hiera_guide, "Guide", READS)
