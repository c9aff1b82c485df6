"""A scripted MCP client: drives a whole run from a folder of candidates. It speaks MCP and nothing else."""
