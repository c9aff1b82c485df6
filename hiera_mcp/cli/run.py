"""`hiera-mcp run FOLDER`: the whole loop on a user's task and candidates."""

import argparse
from pathlib import Path
from typing import get_args

import anyio

from hiera_mcp.cli.connection import Where, connected
from hiera_mcp.cli.options import add_json, add_plan, add_settings, settings_of
from hiera_mcp.cli.report import Screen
from hiera_mcp.client.drive import drive
from hiera_mcp.client.folder import read_folder
from hiera_mcp.client.preflight import ask_doctor, require_isolation
from hiera_mcp.client.report import RunReport
from hiera_mcp.client.script import Script
from hiera_mcp.model.contract import Precision
from hiera_mcp.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_settings(parser)
    add_json(parser)
    parser.add_argument("folder", type=Path, help="holds task.py, round1/, round2/, … and perhaps run.toml")
    parser.add_argument("--target", help="cpu, cuda:sm_80, cuda:sm_90a, … (default: run.toml's, else what is present)")
    parser.add_argument("--precision", choices=get_args(Precision), help="(default: run.toml's, else float32)")
    parser.add_argument("--rounds", type=int, metavar="N", help="only the first N rounds")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--url", help="use a running server, for example http://127.0.0.1:8000/mcp")
    where.add_argument("--in-memory", action="store_true", help="use a server inside this process")
    parser.add_argument("--token", help="bearer token for --url (default: HIERA_HTTP_TOKEN)")
    add_plan(parser)


def run(args: argparse.Namespace) -> int:
    script = scripted(args)
    where = Where(url=args.url, token=args.token, in_memory=args.in_memory)
    report = anyio.run(_drive, settings_of(args), where, script, args.json)
    return 0 if report.best else 1


def scripted(args: argparse.Namespace) -> Script:
    """The folder's script, overridden by the flags."""
    given = {"target": args.target, "precision": args.precision, "plan": tuple(args.plan) or None}
    script = read_folder(args.folder, args.rounds)
    return script.model_copy(update={k: v for k, v in given.items() if v is not None})


async def _drive(settings: Settings, where: Where, script: Script, json: bool) -> RunReport:
    screen = Screen(quiet=json)
    if not where.url:
        screen.starting()
    async with connected(settings, where) as client:
        require_isolation(await ask_doctor(client))
        report = await drive(client, script, screen)
    screen.finish(report)
    if json:
        print(report.model_dump_json(indent=2))
    return report
