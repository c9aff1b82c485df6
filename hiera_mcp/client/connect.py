"""The three ways to reach a server."""

import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TextIO

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer

READ_S = 400.0
"""How long an answer may take; longer than any call of ours waits."""


def over_stdio(env: Mapping[str, str], log: TextIO) -> AbstractAsyncContextManager[Client]:
    """A new server as a subprocess. `env` is its environment; what it logs goes to `log`, a real file."""
    # -P: a folder `hiera_mcp` where the user stands, such as the parent of a checkout, is not the package
    server = StdioServerParameters(command=sys.executable, args=["-P", "-m", "hiera_mcp", "serve"], env=dict(env))
    return Client(stdio_client(server, errlog=log), read_timeout_seconds=READ_S)


def in_memory(server: MCPServer[Any]) -> AbstractAsyncContextManager[Client]:
    """A server object of this process."""
    return Client(server)


@asynccontextmanager
async def over_http(
    url: str, token: str | None = None, refused: Callable[[int], None] = lambda status: None
) -> AsyncGenerator[Client]:
    """A running server, for example http://127.0.0.1:8000/mcp.

    `refused` hears the status of every answer from 400 on; the error that the SDK makes of it no longer has it.
    """

    async def hear(response: httpx2.Response) -> None:
        if response.status_code >= 400:
            refused(response.status_code)

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = httpx2.Timeout(30.0, read=READ_S)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks={"response": [hear]}) as http,
        Client(streamable_http_client(url, http_client=http, max_sse_event_size=None)) as client,
    ):
        yield client
