"""Calls over HTTP that are answered past the SDK's stream: the same answer, and only where nobody could tell."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hiera_mcp.deps import open_deps
from hiera_mcp.protocol.strict import StrictServer
from hiera_mcp.server import create_server
from hiera_mcp.serving.http import MCP_PATH, transport_security
from hiera_mcp.settings import Settings

Post = Callable[..., Awaitable[httpx2.Response]]
ME = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Host": "127.0.0.1:80",
    "MCP-Protocol-Version": "2025-06-18",
}
SEARCH = {"name": "hiera_knowledge_search", "arguments": {"query": "cp.async sm_80+", "limit": 2}}


@asynccontextmanager
async def opened(server: StrictServer) -> AsyncGenerator[Post]:
    """What posts a message to a session of the server."""
    app = server.http_app(MCP_PATH, transport_security("127.0.0.1", ()))
    headers = dict(HEADERS)
    transport = httpx2.ASGITransport(app=app)
    async with app.router.lifespan_context(app), httpx2.AsyncClient(transport=transport) as client:

        async def post(method: str, params: dict[str, Any], **more: Any) -> httpx2.Response:
            message = {"jsonrpc": "2.0", "method": method, "params": params, **more}
            return await client.post(f"http://127.0.0.1{MCP_PATH}", json=message, headers=headers)

        headers["Mcp-Session-Id"] = (await post("initialize", ME, id=0)).headers["mcp-session-id"]
        await post("notifications/initialized", {})
        yield partial(post, "tools/call", id="seven")


@pytest.fixture
def server(tmp_path: Path) -> StrictServer:
    return create_server(lambda: open_deps(Settings(data_dir=tmp_path / "data", cache_dir=tmp_path / "cache")))


def result(response: httpx2.Response, kind: str) -> Any:
    """The result in a response of the expected kind."""
    assert response.headers["content-type"].startswith(kind)
    body = response.text.partition("data: ")[2] or response.text
    answer = json.loads(body)
    assert answer["id"] == "seven"
    return answer["result"]


@pytest.mark.parametrize(
    "call",
    [
        SEARCH,
        {"name": "hiera_knowledge_search", "arguments": {"query": "no-such-word"}},
        {"name": "hiera_guide", "arguments": {}},
        {"name": "hiera_run_status", "arguments": {"run_id": "r_none"}},
        {"name": "hiera_knowledge_search", "arguments": {"words": "x"}},
        {"name": "hiera_artifact_read", "arguments": {"uri": "hiera://knowledge/none"}},
    ],
    ids=lambda call: f"{call['name']} {call['arguments']}",
)
async def test_a_call_that_only_reads_is_answered_at_once_with_what_the_sdk_answers(
    server: StrictServer, call: dict[str, Any]
) -> None:
    async with opened(server) as post:
        at_once = result(await post(call), "application/json")
        streamed = result(await post({**call, "_meta": {"progressToken": 1}}), "text/event-stream")
    assert at_once == streamed


async def test_a_middleware_sees_every_call(server: StrictServer) -> None:
    seen = list[str]()

    async def middleware(ctx: Any, call_next: Any) -> Any:
        seen.append(ctx.method)
        return await call_next(ctx)

    server.middleware.append(middleware)
    async with opened(server) as post:
        assert result(await post(SEARCH), "text/event-stream")["structuredContent"]["entries"]
    assert seen.count("tools/call") == 1


async def test_a_traced_call_has_its_span(server: StrictServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opentelemetry.trace.get_tracer_provider", object)
    async with opened(server) as post:
        assert result(await post(SEARCH), "text/event-stream")["structuredContent"]["entries"]
