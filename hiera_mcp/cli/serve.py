"""`hiera-mcp serve`: the MCP server."""

import argparse
from dataclasses import replace

import anyio

from hiera_mcp.cli.options import add_settings, settings_of
from hiera_mcp.serving import serve_http, serve_stdio

DEFAULT_PORT = 8000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_settings(parser)
    parser.add_argument("--http", action="store_true", help="streamable HTTP at /mcp instead of stdio")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 takes a free one (default: %(default)s)")
    parser.add_argument("--token", help="bearer token (default: HIERA_HTTP_TOKEN); required off loopback")
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a further name under which clients reach the server; may be repeated",
    )


def run(args: argparse.Namespace) -> int:
    settings = settings_of(args)
    if args.http:
        settings = replace(settings, http_token=args.token or settings.http_token)
        anyio.run(serve_http, settings, args.host, args.port, settings.http_token, args.allow_host)
    else:
        anyio.run(serve_stdio, settings)
    return 0
