"""How the server is reached: standard input and output, or streamable HTTP."""

from hiera_mcp.serving.http import serve_http
from hiera_mcp.serving.stdio import serve_stdio

__all__ = ["serve_http", "serve_stdio"]
