"""An MCPServer that refuses what it does not know and says what it would accept.

It reaches into private parts of mcp 2.3 (`_tool_manager`, `Tool.fn_metadata`); tests/unit/server covers each of them.
"""

from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import Any, get_args

from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import (
    ResourceError,
    ResourceNotFoundError,
    ToolError,
    UnexpectedResourceError,
    UnexpectedToolError,
)
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import (
    INVALID_PARAMS,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptResult,
    Icon,
    InputRequiredResult,
    TextContent,
    ToolAnnotations,
)
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route

from hiera_mcp.errors import HieraError, NotFoundError, RequestError
from hiera_mcp.protocol.direct import DirectSessions
from hiera_mcp.protocol.faults import explain
from hiera_mcp.protocol.schemas import without_titles
from hiera_mcp.protocol.texts import fitting, unusable

MAX_COMPLETIONS = 100
"""Of one answer, by the specification."""
Complete = Callable[[Any, str, str], Awaitable[list[str]]]
"""Lifespan object, name of the argument, what is typed so far → values."""


class _Metadata(FuncMetadata):
    """The SDK turns text that happens to be JSON into data; where an argument may be text, text stays text.

    A result is written once: its text is the JSON of the structured content, without spaces.
    """

    @cached_property
    def _texts(self) -> frozenset[str]:
        return frozenset(name for name, field in self.arg_model.model_fields.items() if _takes_text(field.annotation))

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        others = {k: v for k, v in data.items() if k not in self._texts}
        return data | super().pre_parse_json(others) if others else data

    def convert_result(self, result: Any) -> CallToolResult | InputRequiredResult:
        if self.wrap_output or type(result) is not self.output_model:
            return super().convert_result(result)
        plain = result.model_dump(mode="json", by_alias=True)
        text = TextContent(type="text", text=to_json(plain).decode())
        return CallToolResult(content=[text], structured_content=plain)


def _takes_text(annotation: Any) -> bool:
    return annotation is str or str in get_args(annotation)


class StrictServer(MCPServer[Any]):
    """Unknown arguments are refused; a HieraError reaches the agent with its whole message.

    What the agent sees: bad arguments, a HieraError and a ToolError as an error result with text; any other exception
    as an error result that names its type only (the traceback is in the server's log); a resource or prompt that does
    not exist as JSON-RPC error -32602.
    """

    def add_tool(
        self,
        fn: Callable[..., Any],
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | None = None,
        icons: list[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
    ) -> None:
        super().add_tool(fn, name, title, description, annotations, icons, meta, structured_output)
        tool = self._tool(name or fn.__name__)
        tool.parameters = without_titles(_forbid_extra(tool))
        tool.fn_metadata = _Metadata.model_construct(**dict(tool.fn_metadata))
        tool.fn_metadata.output_schema = without_titles(tool.fn_metadata.output_schema or {})

    def _tool(self, name: str) -> Tool:
        tool = self._tool_manager.get_tool(name)
        if tool is None:
            names = [t.name for t in self._tool_manager.list_tools()]
            raise ToolError(str(NotFoundError(f"There is no tool `{name}`.", valid=names)))
        return tool

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        tool = self._tool(name)
        if faults := list(unusable(tool.fn_metadata.pre_parse_json(arguments))):
            raise ToolError(fitting(f"Invalid arguments for {name}:\n{_listed(faults)}"))
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            raise _readable(error, tool) from error.__cause__

    async def read_resource(self, uri: Any, context: Context[Any, Any] | None = None) -> Any:
        if faults := list(unusable(str(uri), "uri")):
            raise ResourceNotFoundError(_listed(faults))
        try:
            return await super().read_resource(uri, context)
        except ResourceNotFoundError as error:
            raise ResourceNotFoundError(f"{fitting(str(error))}. {await self._resource_help()}") from error
        except UnexpectedResourceError as error:
            raise _resource_error(error) from error.__cause__

    async def _resource_help(self) -> str:
        static = [r.uri for r in await self.list_resources()]
        templates = [t.uri_template for t in await self.list_resource_templates()]
        return "Valid: " + ", ".join(static + templates) + "."

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        prompts = {p.name: p for p in await self.list_prompts()}
        if name not in prompts:
            raise _invalid(f"There is no prompt `{name}`. Valid: {', '.join(prompts)}.")
        declared = prompts[name].arguments or []
        _check_names(name, set(arguments or {}), {a.name: bool(a.required) for a in declared})
        if faults := list(unusable(arguments or {})):
            raise _invalid(f"Invalid arguments for prompt {name}:\n{_listed(faults)}")
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as error:
            raise _prompt_error(name, error, self._prompt_schema(name)) from error

    def _prompt_schema(self, name: str) -> dict[str, Any]:
        prompt = self._prompt_manager.get_prompt(name)
        function: Any = prompt.fn if prompt else None
        return TypeAdapter(function).json_schema()

    def http_app(self, path: str, security: TransportSecuritySettings | None, *routes: BaseRoute) -> Starlette:
        """The server over streamable HTTP at `path`, and further routes."""
        tools = self._tool_manager.list_tools()
        reading = frozenset(t.name for t in tools if t.annotations and t.annotations.read_only_hint)
        sessions = DirectSessions(self._lowlevel_server, security, reading)
        return Starlette(
            routes=[Route(path, StreamableHTTPASGIApp(sessions)), *routes], lifespan=lambda _: sessions.run()
        )

    def add_completion(self, complete: Complete) -> None:
        """Answer completion requests; unlike the SDK's decorator, `complete` gets the lifespan's object."""

        async def handler(ctx: ServerRequestContext[Any], params: CompleteRequestParams) -> CompleteResult:
            found = await complete(ctx.lifespan_context, params.argument.name, params.argument.value)
            shown = found[:MAX_COMPLETIONS]
            completion = Completion(values=shown, total=len(found), has_more=len(found) > len(shown))
            return CompleteResult(completion=completion)

        self._lowlevel_server.add_request_handler("completion/complete", CompleteRequestParams, handler)


def _forbid_extra(tool: Tool) -> dict[str, Any]:
    model = tool.fn_metadata.arg_model
    model.model_config["extra"] = "forbid"
    model.model_rebuild(force=True)
    return model.model_json_schema(by_alias=True)


def _readable(error: ToolError, tool: Tool) -> ToolError:
    cause = error.__cause__
    if isinstance(cause, HieraError | ToolError):
        return ToolError(fitting(str(cause)))
    if isinstance(cause, ValidationError) and not isinstance(error, UnexpectedToolError):
        return ToolError(fitting(f"Invalid arguments for {tool.name}:\n{explain(cause, tool.parameters)}"))
    if isinstance(error, UnexpectedToolError):
        kind = type(cause).__name__
        return UnexpectedToolError(
            f"{tool.name} failed because of a fault in the server ({kind}), not in your request. "
            "The server's log has the details. Nothing was decided about any candidate."
        )
    return error


def _resource_error(error: UnexpectedResourceError) -> ResourceError:
    """Unknown ids and bad values become -32602 with the valid ones; other errors of ours keep their text."""
    cause = error.__cause__
    if isinstance(cause, RequestError):
        return ResourceNotFoundError(str(cause))
    if isinstance(cause, ValidationError):
        return ResourceNotFoundError(f"Invalid value in the URI:\n{explain(cause, {})}")
    return ResourceError(str(cause)) if isinstance(cause, HieraError) else error


def _invalid(message: str) -> MCPError:
    return MCPError(INVALID_PARAMS, fitting(message))


def _listed(faults: list[str]) -> str:
    return "\n".join(f"- {fault}" for fault in faults)


def _check_names(prompt: str, given: set[str], declared: dict[str, bool]) -> None:
    unknown = sorted(given - set(declared))
    missing = [name for name, required in declared.items() if required and name not in given]
    if unknown or missing:
        faults = [f"- {name}: no such argument." for name in unknown] + [f"- {name}: is required." for name in missing]
        valid = ", ".join(declared) or "none"
        raise _invalid(f"Invalid arguments for prompt {prompt}. Valid: {valid}.\n" + "\n".join(faults))


def _prompt_error(name: str, error: ValueError, schema: dict[str, Any]) -> Exception:
    """The validation error or the HieraError inside the SDK's wrapping, as -32602; anything else unchanged."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ValidationError):
            return _invalid(f"Invalid arguments for prompt {name}:\n{explain(cause, schema)}")
        if isinstance(cause, HieraError):
            return _invalid(str(cause))
        cause = cause.__cause__
    return error
