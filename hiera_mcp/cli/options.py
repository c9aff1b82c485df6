"""Arguments that several commands share, and the settings that they lead to."""

import argparse
from dataclasses import replace
from pathlib import Path

from hiera_mcp.model.switches import NO_CONTRACT_FILES, NO_MEMORY, switches_of
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


def add_plan(parser: argparse.ArgumentParser) -> None:
    """--plan, --no-contract-files and --no-memory: what is switched off in an ablation."""
    plan = parser.add_argument_group("ablations", "what planning does without; recorded with the run")
    plan.add_argument(
        "--plan",
        action="append",
        default=[],
        metavar="WORD",
        help="fixed-space=SPACE (one space, in all rounds) or no-directions; may be repeated",
    )
    for word, text in (
        (NO_CONTRACT_FILES, "of the contract only the reference and contract.h are shown"),
        (NO_MEMORY, "earlier runs have no say"),
    ):
        plan.add_argument(f"--{word}", dest="plan", action="append_const", const=word, help=text)


def settings_of(args: argparse.Namespace) -> Settings:
    """The environment's settings, overridden by the flags."""
    settings = from_environment()
    if args.data_dir is not None:
        settings = replace(settings, data_dir=args.data_dir.expanduser().resolve())
    if args.knowledge is not None:
        settings = replace(settings, knowledge_dir=args.knowledge.expanduser().resolve())
    if getattr(args, "plan", None):
        settings = replace(settings, plan=switches_of([*settings.plan, *args.plan]).words)
    if args.unsafe_no_sandbox:
        settings = replace(settings, unsafe_no_sandbox=True)
    return settings
