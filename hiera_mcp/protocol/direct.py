"""Streamable HTTP without the stream, for calls that need none.

The SDK answers every call of a session with an event stream, between seven tasks and as many queues; that takes longer
than a search. A tool that only reads sends nothing but its result, and the specification lets a server answer with one
JSON body. So its calls are handled in the task that received them, as the SDK does it for protocol version 2026-07-28.
All else goes the SDK's way, and so does what is wrong with a call: the SDK words the refusal.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import pydantic_core
from mcp import MCPError
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.streamable_http import (
    MCP_SESSION_ID_HEADER,
    StreamableHTTPServerTransport,
    check_accept_headers,
)
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp.types import DEFAULT_NEGOTIATED_VERSION, CallToolRequestParams, CallToolResult, JSONRPCRequest, RequestId
from opentelemetry import trace
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

MAX_BODY = 1 << 16
"""Longer requests ask for more than a read."""


@dataclass
class Exchange:
    """The SDK's `DispatchContext` of one request that is answered once: there is no way back to the client before that."""

    transport: TransportContext
    request_id: RequestId
    message_metadata: ServerMessageMetadata
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    can_send_request: bool = field(default=False, init=False)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Dropped."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Dropped."""


class DirectSessions(StreamableHTTPSessionManager):
    """Sessions in which calls of some tools are answered with one JSON body."""

    def __init__(self, app: Server[Any], security: TransportSecuritySettings | None, tools: frozenset[str]) -> None:
        """`tools`: those that send nothing but their result."""
        super().__init__(app, security_settings=security)
        self._security = TransportSecurityMiddleware(security)
        self._direct = tools

    async def _handle_stateful_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        session = self._session_of(request)
        if session is None or await self._refuses(request):
            await super()._handle_stateful_request(scope, receive, send)
            return
        body = await request.body()
        result = await self._result(request, body)
        if result is None:
            await super()._handle_stateful_request(scope, _again(body, receive), send)
            return
        self._keep(session)
        headers = {MCP_SESSION_ID_HEADER: request.headers[MCP_SESSION_ID_HEADER]}
        await Response(result, headers=headers, media_type="application/json")(scope, receive, send)

    def _session_of(self, request: Request) -> StreamableHTTPServerTransport | None:
        """The open session of a POST that belongs to nobody in particular."""
        name = request.headers.get(MCP_SESSION_ID_HEADER, "")
        session = self._server_instances.get(name) if request.method == "POST" else None
        if session is None or session.is_terminated or name in self._session_owners:
            return None
        return None if session.idle_scope and session.idle_scope.cancel_called else session

    async def _refuses(self, request: Request) -> bool:
        refusal = await self._security.validate_request(request, is_post=True)
        return refusal is not None or check_accept_headers(request) != (True, True)

    async def _result(self, request: Request, body: bytes) -> bytes | None:
        """The answer to a call of one of the tools; None: it is not one, or something is wrong with it."""
        if len(body) > MAX_BODY or self._observed():
            return None
        try:
            call = JSONRPCRequest.model_validate(pydantic_core.from_json(body), by_name=False)
            if call.method != "tools/call":
                return None
            asked = CallToolRequestParams.model_validate(call.params, by_name=False)
            if asked.name not in self._direct or asked.meta:  # what comes with a call may ask for more than its result
                return None
            result = await self._call(request, call, asked)
        except (ValueError, MCPError):  # nothing was changed, so the SDK may do it once more
            return None
        whole = {"jsonrpc": "2.0", "id": call.id, "result": result}
        return pydantic_core.to_json(whole, by_alias=True, exclude_none=True, exclude={"result": {"result_type"}})

    async def _call(self, request: Request, call: JSONRPCRequest, asked: CallToolRequestParams) -> CallToolResult:
        """As `ServerRunner` does it, which also checks the call and its result against the tables of each version."""
        entry = self.app.get_request_handler(call.method)
        assert entry is not None
        version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER, DEFAULT_NEGOTIATED_VERSION)
        exchange = Exchange(
            transport=TransportContext(kind="streamable-http", can_send_request=False, headers=request.headers),
            request_id=call.id,
            message_metadata=ServerMessageMetadata(request_context=request),
        )
        context = ServerRequestContext(
            session=ServerSession(exchange, Connection.from_envelope(version, None, None)),
            lifespan_context=self._lifespan_state,
            protocol_version=version,
            method=call.method,
            params=call.params,
            request_id=call.id,
            request=request,
        )
        result = await entry.handler(context, asked)
        return CallToolResult.model_validate(result)

    def _observed(self) -> bool:
        """Whether somebody traces calls, or has put a middleware beside the SDK's own."""
        foreign = any(not type(m).__module__.startswith("mcp.server.") for m in self.app.middleware)
        return foreign or not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)

    def _keep(self, session: StreamableHTTPServerTransport) -> None:
        """The session was used: it ends only after as long a silence as any other."""
        scope = session.idle_scope
        if scope is not None and self.session_idle_timeout is not None and not math.isinf(scope.deadline):
            scope.deadline = anyio.current_time() + self.session_idle_timeout


def _again(body: bytes, receive: Receive) -> Receive:
    """`receive`, with the body that was read in front."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again
