"""`hiera-mcp serve`: the MCP server."""

import argparse
import sys
from dataclasses import replace

import anyio

from hiera_mcp.cli.options import add_plan, add_settings, settings_of
from hiera_mcp.errors import RequestError
from hiera_mcp.serving import serve_http, serve_stdio

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000
ON_A_TERMINAL = """\
An MCP client speaks to this command over standard input and output; nothing else will appear here.
For a server that clients reach by its address: hiera-mcp serve --http. Ctrl-C ends this one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_settings(parser)
    parser.add_argument("--http", action="store_true", help="streamable HTTP at /mcp instead of stdio")
    parser.add_argument("--host", help=f"address to listen on (default: {DEFAULT_HOST})")
    parser.add_argument("--port", type=port, help=f"0 takes a free one (default: {DEFAULT_PORT})")
    parser.add_argument("--token", help="bearer token (default: HIERA_HTTP_TOKEN); required off loopback")
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a further name under which clients reach the server; may be repeated",
    )
    add_plan(parser)


def run(args: argparse.Namespace) -> int:
    settings = settings_of(args)
    if args.http:
        settings = replace(settings, http_token=args.token or settings.http_token)
        host, number = args.host or DEFAULT_HOST, DEFAULT_PORT if args.port is None else args.port
        anyio.run(serve_http, settings, host, number, settings.http_token, args.allow_host)
        return 0
    _refuse_http_options(args)
    if sys.stdin.isatty():
        print(ON_A_TERMINAL, file=sys.stderr)
    anyio.run(serve_stdio, settings)
    return 0


def port(text: str) -> int:
    """A TCP port, or 0."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port: 0 to 65535")
    return int(text)


def _refuse_http_options(args: argparse.Namespace) -> None:
    """Options that would be passed over in silence, while somebody believes to have a server on a port."""
    given = {"--host": args.host, "--port": args.port, "--token": args.token, "--allow-host": args.allow_host or None}
    names = [name for name, value in given.items() if value is not None]
    if names:
        raise RequestError(f"{', '.join(names)} needs --http: over stdio there is no address.", todo="Add --http.")
