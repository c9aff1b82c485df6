"""What an agent can read: resources, prompts, and their completions."""

from hiera_mcp.resources import candidates, contracts, doctor, guide, knowledge, runs
from hiera_mcp.resources.base import Resource
from hiera_mcp.resources.completions import complete
from hiera_mcp.resources.prompt_list import PROMPTS

ALL: tuple[Resource, ...] = (
    guide.GUIDE,
    doctor.DOCTOR,
    contracts.CONTRACT,
    contracts.FILE,
    contracts.LIST,
    runs.RUN,
    runs.TRAJECTORY,
    candidates.SOURCE,
    candidates.LOG,
    candidates.EVALUATION,
    candidates.PROFILE,
    candidates.LISTING,
    candidates.REPORT,
    candidates.ROOFLINE,
    candidates.STALLS,
    candidates.SANITIZER,
    candidates.SANITIZER_LOG,
    knowledge.KNOWLEDGE,
    knowledge.HARDWARE,
    knowledge.RUBRIC,
)

__all__ = ["ALL", "PROMPTS", "Resource", "complete"]
