"""Streamable HTTP: /mcp for the protocol, /health for monitors."""

import contextlib
import gc
import hmac
import ipaddress
import logging
import socket
from collections.abc import Generator, Sequence
from functools import partial

import anyio
import anyio.to_thread
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from hiera_mcp import __version__
from hiera_mcp.deps import open_deps
from hiera_mcp.errors import RequestError
from hiera_mcp.protocol.strict import StrictServer
from hiera_mcp.server import create_server
from hiera_mcp.serving.logs import log_to_stderr
from hiera_mcp.serving.stopping import exit_after, unwrapped, watch_signals
from hiera_mcp.settings import Settings

MCP_PATH = "/mcp"
HEALTH_PATH = "/health"
GRACE_S = 2
"""How long open connections may finish after a signal."""
LAST_RESORT_S = 10.0
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

log = logging.getLogger(__name__)


async def serve_http(
    settings: Settings,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    allowed_hosts: Sequence[str] = (),
) -> None:
    """Serve on http://host:port/mcp until SIGINT, SIGTERM or SIGHUP; port 0 takes a free one.

    `token` (default: the settings' `http_token`) must then come with every request as `Authorization: Bearer …`,
    /health excepted. `allowed_hosts` are further names under which clients reach the server (DNS rebinding protection
    refuses all others); loopback, `host` and this machine's own names are always allowed.

    Raises:
        RequestError: `host` is not loopback and there is no token, or the address cannot be used.
        StoreError: the database cannot be opened.
    """
    log_to_stderr()
    log.setLevel(logging.INFO)  # where it listens, and why it ends
    token = token or settings.http_token
    check_exposure(host, token)
    security = transport_security(host, allowed_hosts)
    with bind(host, port) as listener, unwrapped():
        async with anyio.create_task_group() as group:
            stopping = anyio.Event()
            group.start_soon(watch_signals, partial(_stop, stopping))
            async with open_deps(settings) as deps:
                await anyio.to_thread.run_sync(deps.knowledge.prepare)
                server = create_server(partial(contextlib.nullcontext, deps))
                await serve_app(application(server, token, security), listener, stopping)
            group.cancel_scope.cancel()


def _stop(stopping: anyio.Event, why: str) -> None:
    log.info("stopping: %s", why)
    exit_after(LAST_RESORT_S)
    stopping.set()


def bind(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        RequestError: the address cannot be used.
    """
    try:
        family = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host.strip("[]"), port), family=family)
        # asyncio does this only where the protocol is named; else each answer waits 40 ms for an acknowledgement
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
        return listener
    except OSError as error:
        what = f"Listening on {_bracketed(host)}:{port} is not possible: {error.strerror or error}."
        raise RequestError(what, todo="Choose another port, or 0 for a free one.") from error


async def serve_app(app: ASGIApp, listener: socket.socket, stopping: anyio.Event) -> None:
    """Serve until `stopping`. What was loaded before is taken to stay."""
    gc.freeze()  # else each full collection walks through all knowledge entries, for a quarter of a second with 10,000
    config = uvicorn.Config(
        app,
        http="httptools",  # parses in C; the other parser takes as long as the rest of a short request
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_S,
        ws="none",
        server_header=False,
    )
    server = _Server(config)
    async with anyio.create_task_group() as group:
        group.start_soon(_end, server, stopping)
        host, port = listener.getsockname()[:2]
        log.info("listening on http://%s:%s%s", _bracketed(host), port, MCP_PATH)
        await server.serve(sockets=[listener])
        group.cancel_scope.cancel()


async def _end(server: uvicorn.Server, stopping: anyio.Event) -> None:
    await stopping.wait()
    server.should_exit = True


def check_exposure(host: str, token: str | None) -> None:
    """Refuse to listen for other machines without a token."""
    if not is_loopback(host) and not token:
        raise RequestError(
            f"Listening on {host} would let everybody on the network run code here.",
            todo="Set a bearer token (HIERA_HTTP_TOKEN), or listen on loopback.",
            valid=("127.0.0.1", "localhost", "::1"),
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def transport_security(host: str, allowed_hosts: Sequence[str]) -> TransportSecuritySettings:
    """Host and Origin headers that are accepted, with any port."""
    names = list(dict.fromkeys([*LOOPBACK, *_own_names(host), *allowed_hosts]))
    return TransportSecuritySettings(
        allowed_hosts=[*names, *(f"{name}:*" for name in names)],
        allowed_origins=[
            f"{scheme}://{name}{port}" for name in names for scheme in ("http", "https") for port in ("", ":*")
        ],
    )


def _own_names(host: str) -> list[str]:
    """`host`, and when it stands for all interfaces, the names and addresses of this machine."""
    if is_loopback(host):
        return []
    if host not in ("0.0.0.0", "::"):
        return [_bracketed(host)]
    name = socket.gethostname()
    found = {name, socket.getfqdn()}
    with contextlib.suppress(OSError):
        found |= {_bracketed(str(info[4][0])) for info in socket.getaddrinfo(name, None)}
    return sorted(found)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def application(server: StrictServer, token: str | None, security: TransportSecuritySettings) -> ASGIApp:
    """The server at MCP_PATH and HEALTH_PATH; every request must bring the token, if there is one."""

    async def health(_: Request) -> JSONResponse:
        return JSONResponse({"ok": True, "version": __version__})

    app = server.http_app(MCP_PATH, security, Route(HEALTH_PATH, health, methods=["GET"]))
    return BearerAuth(app, token) if token else app


class BearerAuth:
    """Answers 401 to every request that does not bring the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or scope["path"] == HEALTH_PATH or self._allows(scope):
            await self._app(scope, receive, send)
            return
        error = {
            "error": "invalid_token",
            "error_description": "Send `Authorization: Bearer TOKEN` with the token of this server.",
        }
        await JSONResponse(error, 401, {"WWW-Authenticate": 'Bearer realm="hiera-mcp"'})(scope, receive, send)

    def _allows(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return False
        scheme, _, token = given[0].partition(b" ")
        return hmac.compare_digest(scheme.lower() + b" " + token.strip(), self._expected)


class _Server(uvicorn.Server):
    """uvicorn without its own signal handlers, which raise the signal again after an orderly end."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield
