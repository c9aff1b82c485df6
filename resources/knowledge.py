"""Expert entries, GPU facts and rubrics."""

from hiera_mcp.errors import NotFoundError
from hiera_mcp.knowledge_base import hardware
from hiera_mcp.planning.rubrics import RUBRICS, rubric_text
from hiera_mcp.resources.base import MARKDOWN, Ctx, Resource, as_json, deps_of
from hiera_mcp.resources.entry_text import entry_text


async def knowledge(slug: str, ctx: Ctx) -> str:
    """One expert entry: when it applies, steps, constraints, pitfalls, numbers, expected effect, sources."""
    return entry_text(deps_of(ctx).knowledge.entry(slug))


async def gpu_facts(gpu: str) -> str:
    """Facts of a GPU: peaks, bandwidth, limits per SM, instructions, source. By name, alias or slug (h200)."""
    return as_json(hardware.named(gpu))


async def rubric_file(rubric: str) -> str:
    """A rubric of the planner: criteria with weights and anchors, gates. Names: space, direction, strategy."""
    for kind in RUBRICS:
        if kind == rubric:
            return rubric_text(kind)
    raise NotFoundError(f"There is no rubric `{rubric}`.", valid=RUBRICS)


KNOWLEDGE = Resource("hiera://knowledge/{slug}", knowledge, "Knowledge entry", MARKDOWN)
HARDWARE = Resource("hiera://hardware/{gpu}", gpu_facts, "GPU facts")
RUBRIC = Resource("hiera://rubrics/{rubric}", rubric_file, "Rubric", "application/yaml")
