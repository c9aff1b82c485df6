"""`python -m hiera_mcp` is the same program as `hiera-mcp`."""

import sys

from hiera_mcp.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
