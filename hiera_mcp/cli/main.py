"""`hiera-mcp COMMAND …`. A command's module is imported only when it runs, so that `--version` and `--help` are instant."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol, cast

from hiera_mcp import __version__
from hiera_mcp.errors import HieraError

COMMANDS = {
    "serve": "run the MCP server, over stdio or HTTP",
    "demo": "run the whole loop on a shipped task",
    "run": "run the whole loop on a folder with your task and candidates",
    "contract": "build a contract from a reference and write its files",
    "doctor": "say what this host offers, and what to install",
    "runs": "list the runs, or show one",
    "kb": "search the knowledge base",
}
"""Name → what `--help` says. Each is the module of the same name in this folder."""

FAILED = 2
"""Exit status after an error; 1 says that the work was done, but nothing passed."""


class Command(Protocol):
    """What each command's module offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    args = parser_for(words).parse_args(words)
    try:
        return command(args.command).run(args)
    except HieraError as error:
        _complain(str(error))
        return FAILED
    except KeyboardInterrupt:
        _complain("stopped")
        return 130
    except BrokenPipeError:  # the reader of our output is gone; Python would complain once more while it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _complain(what: str) -> None:
    """Last words, in the place of a progress line that may stand on the terminal."""
    clear = "\r\x1b[2K" if sys.stderr.isatty() else ""
    print(f"{clear}hiera-mcp: {what}", file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    """Answers an unknown option with the usage of the command that it was given to, not of the program."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown


def parser_for(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser; only the command that `words` begin with has its arguments."""
    parser = _Parser(prog="hiera-mcp", description="Optimise GPU kernels with LLM agents by the HIERA method.")
    parser.add_argument("--version", action="version", version=f"hiera-mcp {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        sub = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if name in words[:1]:
            command(name).add_arguments(sub)
    return parser


def command(name: str) -> Command:
    """The module of a command."""
    return cast(Command, import_module(f"hiera_mcp.cli.{name}"))
