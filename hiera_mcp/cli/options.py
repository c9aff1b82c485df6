"""Arguments that several commands share, and the settings that they lead to."""

import argparse
from dataclasses import replace
from pathlib import Path

from hiera_mcp.settings import Settings, from_environment

DATA_DIR_HELP = "database and files (default: HIERA_DATA_DIR, else ~/.local/share/hiera-mcp)"
KNOWLEDGE_HELP = "own knowledge entries, beside the shipped ones; read at the start (default: HIERA_KNOWLEDGE_DIR)"


def add_settings(parser: argparse.ArgumentParser) -> None:
    """--data-dir, --knowledge and --unsafe-no-sandbox."""
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help=DATA_DIR_HELP)
    parser.add_argument("--knowledge", type=Path, metavar="DIR", help=KNOWLEDGE_HELP)
    parser.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="run untrusted code without isolation: it can then read and change whatever you can",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def settings_of(args: argparse.Namespace) -> Settings:
    """The environment's settings, overridden by the flags."""
    settings = from_environment()
    if args.data_dir is not None:
        settings = replace(settings, data_dir=args.data_dir.expanduser().resolve())
    if args.knowledge is not None:
        settings = replace(settings, knowledge_dir=args.knowledge.expanduser().resolve())
    if args.unsafe_no_sandbox:
        settings = replace(settings, unsafe_no_sandbox=True)
    return settings
