"""hiera_mcp: an MCP server with which LLM agents optimise GPU kernels by the HIERA method (arXiv 2608.21157)."""

__version__ = "0.1.0"
__all__ = ["__version__"]
