"""Connects the client to a server, and says in one line what is wrong when that fails."""

import os
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TextIO

import httpx2
from mcp import Client, MCPError

from hiera_mcp.client.connect import in_memory, over_http, over_stdio
from hiera_mcp.deps import open_deps
from hiera_mcp.errors import HieraError
from hiera_mcp.server import create_server
from hiera_mcp.settings import Settings

LOG_LINES = 8


class ConnectionFailed(HieraError):
    """The server could not be reached, or ended in mid-work."""

    kind = "connection"


@dataclass(frozen=True)
class Where:
    """Which server to use."""

    url: str | None = None
    token: str | None = None
    in_memory: bool = False


@asynccontextmanager
async def connected(settings: Settings, where: Where | None = None) -> AsyncGenerator[Client]:
    """A connected client: to `where.url`, to a server in this process, or (the default) to a new subprocess.

    Raises:
        ConnectionFailed: with the end of the server's log when it is ours.
    """
    where = where or Where()
    with tempfile.TemporaryFile("w+") as log:
        try:
            async with _open(settings, where, log) as client:
                yield client
        except BaseExceptionGroup as group:
            raise _told(_first(group), where, log) from group
        except (MCPError, OSError, httpx2.HTTPError) as error:
            raise _told(error, where, log) from error


@asynccontextmanager
async def local(settings: Settings) -> AsyncGenerator[Client]:
    """A client of a server in this process."""
    async with connected(settings, Where(in_memory=True)) as client:
        yield client


def _open(settings: Settings, where: Where, log: TextIO) -> AbstractAsyncContextManager[Client]:
    if where.url:
        return over_http(where.url, where.token or settings.http_token)
    if where.in_memory:
        return in_memory(create_server(lambda: open_deps(settings)))
    return over_stdio(environment_of(settings, os.environ), log)


def environment_of(settings: Settings, env: Mapping[str, str]) -> dict[str, str]:
    """The environment under which a new server has these settings."""
    ours = {"HIERA_DATA_DIR": str(settings.data_dir), "HIERA_CACHE_DIR": str(settings.cache_dir)}
    if settings.knowledge_dir:
        ours["HIERA_KNOWLEDGE_DIR"] = str(settings.knowledge_dir)
    if settings.unsafe_no_sandbox:
        ours["HIERA_UNSAFE_NO_SANDBOX"] = "1"
    return {**env, **ours}


def _first(error: BaseException) -> BaseException:
    """The first error inside nested groups: task groups wrap whatever ended them."""
    inner: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return _first(inner[0]) if inner else error


def _told(error: BaseException, where: Where, log: TextIO) -> BaseException:
    """A connection's error as one line; any other error as it is."""
    if not isinstance(error, MCPError | OSError | httpx2.HTTPError):
        return error
    server = where.url or "the server"
    hint = "Is it running, and is the token right (--token)?" if where.url else _tail(log)
    return ConnectionFailed(f"The connection to {server} failed: {_said(error)}.", todo=hint)


def _said(error: BaseException) -> str:
    return str(error).rstrip(".") or type(error).__name__


def _tail(log: TextIO) -> str:
    log.seek(0)
    lines = log.read().splitlines()[-LOG_LINES:]
    return "Its log ends with:\n" + "\n".join(lines) if lines else "It logged nothing."
