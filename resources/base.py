"""How a resource is declared, and what all resources share."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel, JsonValue
from pydantic_core import to_json

from hiera_mcp.deps import Deps

Ctx = Context[Deps, Any]

JSON = "application/json"
TEXT = "text/plain"
MARKDOWN = "text/markdown"
SVG = "image/svg+xml"
BINARY = "application/octet-stream"


@dataclass(frozen=True)
class Resource:
    """One resource: a URI (template), a reader whose parameters are the template's, and its docstring as description."""

    uri: str
    read: Callable[..., Awaitable[str | bytes]]
    title: str
    mime_type: str = JSON

    @property
    def name(self) -> str:
        return self.read.__name__

    def register(self, server: MCPServer[Any]) -> None:
        """Add it to a server."""
        description = inspect.cleandoc(self.read.__doc__ or "")
        register = server.resource(
            self.uri, name=self.name, title=self.title, description=description, mime_type=self.mime_type
        )
        register(self.read)


def deps_of(ctx: Ctx) -> Deps:
    """The server's parts."""
    return ctx.request_context.lifespan_context


def as_json(value: BaseModel | JsonValue | dict[str, Any]) -> str:
    """Indented JSON, so that it can be read line by line."""
    return to_json(value, indent=1).decode() + "\n"
