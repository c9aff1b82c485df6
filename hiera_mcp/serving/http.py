"""Streamable HTTP: /mcp for the protocol, /health for monitors."""

import contextlib
import hmac
import ipaddress
import logging
import signal
import socket
from collections.abc import Generator, Sequence

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from hiera_mcp import __version__
from hiera_mcp.deps import open_deps
from hiera_mcp.errors import RequestError
from hiera_mcp.server import create_server
from hiera_mcp.serving.logs import log_to_stderr
from hiera_mcp.settings import Settings

MCP_PATH = "/mcp"
HEALTH_PATH = "/health"
GRACE_S = 2
"""How long open connections may finish after a signal."""
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
        RequestError: `host` is not loopback and there is no token.
    """
    log_to_stderr()
    token = token or settings.http_token
    check_exposure(host, token)
    app = _application(settings, token, transport_security(host, allowed_hosts))
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        timeout_graceful_shutdown=GRACE_S,
        ws="none",
        server_header=False,
    )
    server = _Server(config)
    async with anyio.create_task_group() as group:
        group.start_soon(_watch_signals, server)
        await server.serve()
        group.cancel_scope.cancel()


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


def _application(settings: Settings, token: str | None, security: TransportSecuritySettings) -> ASGIApp:
    server = create_server(lambda: open_deps(settings))

    async def health(_: Request) -> JSONResponse:
        return JSONResponse({"ok": True, "version": __version__})

    server.custom_route(HEALTH_PATH, methods=["GET"])(health)
    app = server.streamable_http_app(streamable_http_path=MCP_PATH, transport_security=security)
    return BearerAuth(app, token) if token else app


class BearerAuth:
    """Answers 401 to every request that does not bring the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] == HEALTH_PATH or self._allows(scope):
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

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            for listener in self.servers:
                for bound in listener.sockets:
                    host, port = bound.getsockname()[:2]
                    log.warning("listening on http://%s:%s%s", _bracketed(host), port, MCP_PATH)


async def _watch_signals(server: _Server) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for _ in signals:
            server.force_exit = server.should_exit
            server.should_exit = True
