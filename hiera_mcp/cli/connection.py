"""Connects the client to a server, and says in one line what is wrong when that fails."""

import os
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TextIO

import httpx2
from mcp import Client, MCPError

from hiera_mcp.client.connect import in_memory, over_http, over_stdio
from hiera_mcp.deps import open_deps
from hiera_mcp.errors import HieraError, RequestError
from hiera_mcp.server import create_server
from hiera_mcp.settings import Settings

LOG_LINES = 8
OUR_PREFIX = "hiera-mcp: "
"""What a server that gives up logs last begins with this."""

REFUSALS = {
    401: "It wants the bearer token that it was started with: --token, or HIERA_HTTP_TOKEN.",
    404: "There is nothing at this address; the protocol is served at /mcp.",
    421: "It does not know this name as its own: start it with --allow-host NAME, or use another of its names.",
}
"""HTTP status → what to do."""


class ConnectionFailed(HieraError):
    """The server could not be reached, or ended in mid-work."""

    kind = "connection"


@dataclass(frozen=True)
class Where:
    """Which server to use."""

    url: str | None = None
    token: str | None = None
    in_memory: bool = False


@dataclass(frozen=True)
class _Trail:
    """What is known when a connection fails."""

    where: Where
    log: TextIO
    statuses: list[int] = field(default_factory=list[int])
    """HTTP statuses of refusals."""
    ours: list[OSError] = field(default_factory=list[OSError])
    """Errors of the code that used the connection: a full disk, a reader of our output that left."""


@asynccontextmanager
async def connected(settings: Settings, where: Where | None = None) -> AsyncGenerator[Client]:
    """A connected client: to `where.url`, to a server in this process, or (the default) to a new subprocess.

    Raises:
        ConnectionFailed: with the end of the server's log when it is ours.
        RequestError: `where.url` is not a URL.
    """
    with tempfile.TemporaryFile("w+") as log:
        trail = _Trail(where or Where(), log)
        try:
            async with _open(settings, trail) as client:
                try:
                    yield client
                except OSError as error:
                    trail.ours.append(error)
                    raise
        except BaseExceptionGroup as group:
            raise _told(_first(group), trail) from group
        except (MCPError, OSError, httpx2.HTTPError) as error:
            raise _told(error, trail) from error


@asynccontextmanager
async def local(settings: Settings) -> AsyncGenerator[Client]:
    """A client of a server in this process."""
    async with connected(settings, Where(in_memory=True)) as client:
        yield client


def _open(settings: Settings, trail: _Trail) -> AbstractAsyncContextManager[Client]:
    where = trail.where
    if where.url:
        if not where.url.startswith(("http://", "https://")):
            raise RequestError(f"`{where.url}` is not a URL.", todo="Name it whole, as http://127.0.0.1:8000/mcp.")
        return over_http(where.url, where.token or settings.http_token, trail.statuses.append)
    if where.in_memory:
        return in_memory(create_server(lambda: open_deps(settings)))
    return over_stdio(environment_of(settings, os.environ), trail.log)


def environment_of(settings: Settings, env: Mapping[str, str]) -> dict[str, str]:
    """The environment under which a new server has these settings."""
    ours = {"HIERA_DATA_DIR": str(settings.data_dir), "HIERA_CACHE_DIR": str(settings.cache_dir)}
    if settings.knowledge_dir:
        ours["HIERA_KNOWLEDGE_DIR"] = str(settings.knowledge_dir)
    if settings.plan:
        ours["HIERA_PLAN"] = " ".join(settings.plan)
    if settings.unsafe_no_sandbox:
        ours["HIERA_UNSAFE_NO_SANDBOX"] = "1"
    return {**env, **ours}


def _first(error: BaseException) -> BaseException:
    """The first error inside nested groups: task groups wrap whatever ended them."""
    inner: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return _first(inner[0]) if inner else error


def _told(error: BaseException, trail: _Trail) -> BaseException:
    """A connection's error as one line; any other error as it is."""
    if not isinstance(error, MCPError | OSError | httpx2.HTTPError) or error in trail.ours:
        return error
    return _remote(error, trail) if trail.where.url else _own(error, trail.log)


def _remote(error: BaseException, trail: _Trail) -> ConnectionFailed:
    status = trail.statuses[-1] if trail.statuses else None
    why = f"{status} {HTTPStatus(status).phrase}" if status in set(HTTPStatus) else _said(error)
    hint = REFUSALS.get(status or 0, "Is it running there?")
    return ConnectionFailed(f"The connection to {trail.where.url} failed: {why}.", todo=hint)


def _own(error: BaseException, log: TextIO) -> ConnectionFailed:
    """A server that we started ourselves: what it says of itself is all that the user needs."""
    log.seek(0)
    lines = log.read().splitlines()[-LOG_LINES:]
    if lines and lines[-1].startswith(OUR_PREFIX):
        return ConnectionFailed(lines[-1].removeprefix(OUR_PREFIX))
    hint = "Its log ends with:\n" + "\n".join(lines) if lines else "It logged nothing."
    return ConnectionFailed(f"The connection to the server failed: {_said(error)}.", todo=hint)


def _said(error: BaseException) -> str:
    return str(error).rstrip(".") or type(error).__name__
