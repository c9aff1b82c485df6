"""Logging of a serving process."""

import logging
import sys


def log_to_stderr() -> None:
    """Plain lines on standard error, unless logging is set up already. The SDK would draw boxes there."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
