"""hiera_artifact_read: any resource of the server, page by page, for clients without resources."""

from typing import Annotated

from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from pydantic import Field

from hiera_mcp.errors import NotFoundError, RequestError
from hiera_mcp.model.base import Model
from hiera_mcp.tools.base import READS, Ctx, Tool

MAX_CHARS = 30_000
"""Of one page. Clients spill results above about 50,000 characters into a file."""


class Page(Model):
    """Some lines of an artifact."""

    uri: str
    text: str
    """The lines; with `grep` each begins with its line number."""
    offset: int
    lines: int
    """How many lines `text` holds."""
    total_lines: int
    """Lines of the artifact, or with `grep` the number of those that match."""
    next_offset: int | None
    """Where the next page begins; null at the end."""
    next_step: str


async def hiera_artifact_read(
    uri: Annotated[str, Field(description="A hiera:// address from another result.")],
    ctx: Ctx,
    offset: Annotated[int, Field(ge=0, description="Lines to skip.")] = 0,
    limit: Annotated[int, Field(ge=1, le=2000, description="Lines to return.")] = 200,
    grep: Annotated[
        str | None, Field(description="Only lines with this text, whatever its case; `a|b` finds either.")
    ] = None,
) -> Page:
    """Read a large thing by page or pattern: contract files, sources, compiler and run logs, profiles, trajectories.

    Use it for any hiera:// address that another result names (source_uri, log_uri, trajectory_uri, files, uri).
    Returns the lines asked for, how many there are, and where the next page begins.
    """
    return page(uri, await _text(ctx, uri), offset, limit, grep)


async def _text(ctx: Ctx, uri: str) -> str:
    try:
        contents = list(await ctx.read_resource(uri))
    except ResourceNotFoundError as error:
        raise NotFoundError(str(error)) from error
    content = contents[0].content
    if isinstance(content, bytes):
        raise RequestError(f"{uri} is not text.")
    return content


def page(uri: str, text: str, offset: int, limit: int, grep: str | None) -> Page:
    """The page of `text` that begins at line `offset`, cut at MAX_CHARS."""
    found = _matching(text.splitlines(), grep)
    if offset and offset >= len(found):
        raise RequestError(f"There are {len(found)} lines, so none at offset {offset}.", todo="Use a smaller offset.")
    lines = _fitting(found[offset : offset + limit])
    end = offset + len(lines)
    next_offset = end if end < len(found) else None
    return Page(
        uri=uri,
        text="\n".join(lines),
        offset=offset,
        lines=len(lines),
        total_lines=len(found),
        next_offset=next_offset,
        next_step=f"For more, call it again with offset={next_offset}." if next_offset else "This is the end of it.",
    )


def _matching(lines: list[str], grep: str | None) -> list[str]:
    if not grep:
        return lines
    wanted = [part.lower() for part in grep.split("|") if part]
    return [f"{n}: {line}" for n, line in enumerate(lines, 1) if any(part in line.lower() for part in wanted)]


def _fitting(lines: list[str]) -> list[str]:
    """As many lines as fit into MAX_CHARS, but at least one; a line that alone is too long is cut."""
    fitting: list[str] = []
    room = MAX_CHARS
    for line in lines:
        if len(line) > MAX_CHARS:
            line = line[:MAX_CHARS] + f" … [{len(line) - MAX_CHARS} characters cut]"
        if fitting and len(line) + 1 > room:
            break
        fitting.append(line)
        room -= len(line) + 1
    return fitting


TOOL = Tool(hiera_artifact_read, "Read an artifact", READS)
