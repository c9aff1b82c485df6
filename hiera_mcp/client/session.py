"""Typed calls to a server: one answer per call, however long the work behind it takes."""

import json
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from mcp import Client, MCPError
from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT, CallToolResult, TextContent, TextResourceContents
from pydantic import BaseModel, JsonValue

from hiera_mcp.errors import HieraError
from hiera_mcp.model.run import JobState

Answer = dict[str, Any]
Progress = Callable[[str, float | None], Awaitable[None]]
"""Receives a line, and a fraction from 0 to 1 where the server can tell it."""
V = TypeVar("V", bound=BaseModel)

WAIT_S = 25.0
"""How long one call waits; a longer job is asked for again."""
_ENDED = {JobState.FAILED: "failed", JobState.CANCELLED: "was cancelled", JobState.INTERRUPTED: "was interrupted"}


class ToolFailed(HieraError):
    """A tool or a resource refused or failed; the text is the server's."""

    kind = "tool"


async def ignore(message: str, fraction: float | None) -> None:
    """Progress that nobody looks at."""


class Session:
    """A connected client that knows how the tools answer."""

    def __init__(self, client: Client, progress: Progress = ignore) -> None:
        self._client = client
        self._progress = progress

    async def call(self, tool: str, **arguments: JsonValue) -> Answer:
        """One call; arguments that are None are left out.

        Raises:
            ToolFailed: the tool answered with an error.
            MCPError: the connection or the protocol failed.
        """
        given = {k: v for k, v in arguments.items() if v is not None}
        with _server_errors(tool):
            result = await self._client.call_tool(tool, given, progress_callback=self._hear)
        if result.is_error or result.structured_content is None:
            raise ToolFailed(f"{tool}: {_text(result)}")
        return result.structured_content

    async def work(self, tool: str, **arguments: JsonValue) -> Answer:
        """A long call, waited for until its job is done.

        Raises:
            ToolFailed: the job failed, was cancelled or interrupted.
        """
        answer = await self.call(tool, wait_s=WAIT_S, **arguments)
        if not JobState(answer["state"]).ended:
            job = await self.ended(str(answer["job_id"]))
            result: Answer = job["result"] or {}
            answer = answer | result | {"state": job["state"], "error": job["error"]}
        if answer["state"] != JobState.DONE:
            why = answer.get("error") or answer.get("next_step") or "no reason was given"
            raise ToolFailed(f"{tool}: job {answer['job_id']} {_ENDED[JobState(answer['state'])]}: {why}")
        return answer

    async def ended(self, job_id: str) -> Answer:
        """A job once it has ended, however it did."""
        while True:
            job = await self.call("hiera_job", job_id=job_id, wait_s=WAIT_S)
            if JobState(job["state"]).ended:
                return job

    async def read(self, uri: str) -> str:
        """The text of a resource.

        Raises:
            ToolFailed: the server has no such resource, or could not make it.
        """
        with _server_errors(uri):
            contents = (await self._client.read_resource(uri)).contents
        return "".join(c.text for c in contents if isinstance(c, TextResourceContents))

    async def read_as(self, kind: type[V], uri: str) -> V:
        """A JSON resource as a model."""
        return kind.model_validate(json.loads(await self.read(uri)))

    async def _hear(self, progress: float, total: float | None, message: str | None) -> None:
        fraction = progress / total if total else None
        await self._progress(message or "", fraction)


@contextmanager
def _server_errors(what: str) -> Generator[None]:
    """An answer that is a protocol error is the server's word; a lost connection stays an MCPError."""
    try:
        yield
    except MCPError as error:
        if error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
            raise
        raise ToolFailed(f"{what}: {error.message}") from error


def _text(result: CallToolResult) -> str:
    text = "\n".join(c.text for c in result.content if isinstance(c, TextContent))
    return text.removeprefix("Error executing tool ") or "the server gave no reason"
