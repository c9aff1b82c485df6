"""Clients that call one tool of a server over HTTP, all at once: how long each call takes them.

    python -m benchmarks.mcp_load URL TOOL [--clients N] [--pause S] [--sdk] < queries.json > milliseconds.json

Each client has a session and a connection of its own and calls the tool with `query`, again and again; after a pause if
one is given, else as soon as it has its answer. It is a process of its own, so that it and the server do not take turns
in one interpreter. The plain client speaks JSON-RPC over a socket, and what it measures is the wait alone: from the first
byte sent to the last byte received. With --sdk it is the client of the MCP SDK, which parses and validates each answer;
all clients of one process take turns for that, and each waits for it.
"""

import argparse
import asyncio
import itertools
import json
import random
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from mcp import Client

from hiera_mcp.client.connect import over_http

Ask = Callable[[str], Awaitable[None]]
PROTOCOL = "2025-06-18"
HEAD = """POST {path} HTTP/1.1\r
Host: {host}\r
Content-Type: application/json\r
Accept: application/json, text/event-stream\r
MCP-Protocol-Version: {version}\r
{session}Content-Length: {length}\r
\r
"""


class Connection:
    """JSON-RPC over one HTTP connection."""

    def __init__(self, url: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._to = {"path": urlsplit(url).path, "host": urlsplit(url).netloc, "version": PROTOCOL}
        self._reader, self._writer = reader, writer
        self._session = ""
        self._numbers = itertools.count(1)

    async def request(self, method: str, params: dict[str, Any]) -> bytes:
        return await self._post({"method": method, "params": params, "id": next(self._numbers)})

    async def notify(self, method: str) -> None:
        await self._post({"method": method, "params": {}})

    async def _post(self, message: dict[str, Any]) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        head = HEAD.format(**self._to, session=self._session, length=len(body))
        self._writer.write(head.encode() + body)
        status, _, lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().partition("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines.split("\r\n"))}
        if name := headers.get("mcp-session-id"):
            self._session = f"Mcp-Session-Id: {name}\r\n"
        answer = await self._body(headers)
        if " 20" not in status:
            raise SystemExit(f"{status}: {answer[:500]!r}")
        return answer

    async def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return await self._reader.readexactly(int(headers.get("content-length", 0)))
        parts = list[bytes]()
        while length := int(await self._reader.readuntil(b"\r\n"), 16):
            parts.append((await self._reader.readexactly(length + 2))[:-2])
        await self._reader.readexactly(2)
        return b"".join(parts)


@asynccontextmanager
async def plain(url: str, tool: str) -> AsyncGenerator[Ask]:
    """A session that calls `tool` and looks whether the answer is one."""
    reader, writer = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
    connection = Connection(url, reader, writer)

    async def ask(query: str) -> None:
        answer = await connection.request("tools/call", {"name": tool, "arguments": {"query": query}})
        if b"next_step" not in answer:
            raise SystemExit(f"{tool} answered {answer[:500]!r}")

    me = {"name": "benchmark", "version": "1"}
    await connection.request("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": me})
    await connection.notify("notifications/initialized")
    yield ask
    writer.close()


@asynccontextmanager
async def with_sdk(url: str, tool: str) -> AsyncGenerator[Ask]:
    """The same with the SDK's client."""

    async def ask(query: str) -> None:
        answer = await client.call_tool(tool, {"query": query})
        if answer.is_error or "next_step" not in (answer.structured_content or {}):
            raise SystemExit(f"{tool} answered {answer}")

    client: Client
    async with over_http(url) as client:
        await client.list_tools()  # with the schemas against which the client checks each answer
        yield ask


async def timed(ask: Ask, asked: Sequence[str], pause: float) -> list[float]:
    """Milliseconds of each request of one client; the first tenth is a warm-up."""
    draw, times = random.Random(asked[0]), list[float]()
    for query in asked:
        if pause:
            await asyncio.sleep(draw.uniform(0, 2 * pause))
        begin = time.perf_counter()
        await ask(query)
        times.append((time.perf_counter() - begin) * 1e3)
    return times[len(times) // 10 :]


async def load(options: argparse.Namespace, asked: Sequence[str]) -> list[float]:
    """All clients at once, each with its share of the queries."""
    connect = with_sdk if options.sdk else plain
    async with AsyncExitStack() as stack:
        asks = [await stack.enter_async_context(connect(options.url, options.tool)) for _ in range(options.clients)]
        shares = [asked[n :: options.clients] for n in range(options.clients)]
        times = await asyncio.gather(*(timed(*one, options.pause) for one in zip(asks, shares, strict=True)))
    return list(itertools.chain.from_iterable(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("tool")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--pause", type=float, default=0.0, help="mean seconds between two requests of a client")
    parser.add_argument("--sdk", action="store_true")
    options = parser.parse_args()
    print(json.dumps(asyncio.run(load(options, json.load(sys.stdin)))))


if __name__ == "__main__":
    main()
