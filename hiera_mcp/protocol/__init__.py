"""What the project adds to the MCP SDK: strict arguments, readable errors, typed prompts."""
