"""How the client waits for long work, and what it makes of errors; against a small server that speaks real MCP."""

from typing import Any

import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from hiera_mcp.client.connect import in_memory
from hiera_mcp.client.session import Session, ToolFailed


def server(states: list[dict[str, Any]]) -> MCPServer[Any]:
    """A server whose `slow` returns a queued job, and whose `hiera_job` answers with each of `states` in turn."""
    mcp: MCPServer[Any] = MCPServer("test")
    left = list(states)

    @mcp.tool()
    async def slow(wait_s: float, word: str, ctx: Context[Any, Any]) -> dict[str, Any]:
        await ctx.report_progress(0.5, 1.0, f"working on {word}")
        return {"state": "queued", "job_id": "j1", "found": None, "next_step": "call hiera_job"}

    @mcp.tool()
    async def quick(wait_s: float) -> dict[str, Any]:
        return {"state": "done", "job_id": "j2", "found": 7, "next_step": ""}

    @mcp.tool()
    async def broken() -> dict[str, Any]:
        raise ToolError("the thing is not there. Valid: a, b.")

    @mcp.tool()
    async def hiera_job(job_id: str, wait_s: float) -> dict[str, Any]:
        return {"job_id": job_id, "result": None, "error": None} | left.pop(0)

    @mcp.resource("text://one")
    async def one() -> str:
        return '{"a": 1}'

    assert all((slow, quick, broken, hiera_job, one))
    return mcp


async def test_a_long_call_is_asked_for_until_its_job_is_done() -> None:
    states = [{"state": "running"}, {"state": "running"}, {"state": "done", "result": {"found": 5}}]
    async with in_memory(server(states)) as client:
        answer = await Session(client).work("slow", word="x")
    assert answer["found"] == 5


async def test_a_call_that_is_done_at_once_asks_for_no_job() -> None:
    async with in_memory(server([])) as client:
        answer = await Session(client).work("quick")
    assert answer["found"] == 7


@pytest.mark.parametrize(
    ("state", "said"), [("failed", "failed"), ("cancelled", "was cancelled"), ("interrupted", "was interrupted")]
)
async def test_a_job_that_did_not_end_well_is_an_error_with_its_reason(state: str, said: str) -> None:
    async with in_memory(server([{"state": state, "error": "the launcher is gone"}])) as client:
        with pytest.raises(ToolFailed, match=f"slow: job j1 {said}: the launcher is gone"):
            await Session(client).work("slow", word="x")


async def test_an_error_of_a_tool_keeps_the_servers_words() -> None:
    async with in_memory(server([])) as client:
        with pytest.raises(ToolFailed, match=r"the thing is not there\. Valid: a, b\."):
            await Session(client).call("broken")


async def test_progress_arrives_with_its_fraction() -> None:
    heard: list[tuple[str, float | None]] = []

    async def hear(message: str, fraction: float | None) -> None:
        heard.append((message, fraction))

    async with in_memory(server([{"state": "done", "result": {}}])) as client:
        await Session(client, hear).work("slow", word="it")
    assert heard == [("working on it", 0.5)]


async def test_arguments_that_are_none_are_left_out() -> None:
    async with in_memory(server([])) as client:
        with pytest.raises(ToolFailed, match="word"):
            await Session(client).call("slow", wait_s=1.0, word=None)


async def test_a_resource_is_read_as_text() -> None:
    async with in_memory(server([])) as client:
        assert await Session(client).read("text://one") == '{"a": 1}'


async def test_a_resource_that_does_not_exist_is_the_servers_error() -> None:
    async with in_memory(server([])) as client:
        with pytest.raises(ToolFailed, match="text://two"):
            await Session(client).read("text://two")
