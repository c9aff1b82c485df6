"""The whole loop as a text."""

from hiera_mcp.guides import loop_text
from hiera_mcp.resources.base import MARKDOWN, Resource


async def guide() -> str:
    """How to optimise a kernel with this server, step by step. The same text as hiera_guide and optimize_kernel."""
    return loop_text()


GUIDE = Resource("hiera://guide", guide, "Guide", MARKDOWN)
