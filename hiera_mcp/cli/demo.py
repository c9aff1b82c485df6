"""`hiera-mcp demo`: the whole loop on a shipped task, against a real server over stdio."""

import argparse

import anyio

from hiera_mcp.cli.connection import connected
from hiera_mcp.cli.options import add_json, add_settings, settings_of
from hiera_mcp.cli.report import Screen
from hiera_mcp.client.drive import drive
from hiera_mcp.client.folder import read_folder
from hiera_mcp.client.preflight import ask_doctor, demo_folder, pick_target
from hiera_mcp.client.report import RunReport
from hiera_mcp.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_settings(parser)
    add_json(parser)
    parser.add_argument("--target", help="cpu or cuda:sm_NN (default: the GPU's where there is one, else cpu)")


def run(args: argparse.Namespace) -> int:
    report = anyio.run(_demo, settings_of(args), args.target, args.json)
    return 0 if report.best else 1


async def _demo(settings: Settings, target: str | None, json: bool) -> RunReport:
    screen = Screen(quiet=json)
    if not json:
        print(f"Data in {settings.data_dir}")
    async with connected(settings) as client:
        chosen = pick_target(await ask_doctor(client), target)
        folder = demo_folder(chosen)
        if not json:
            print(f"Task and candidates: {folder}\n")
        report = await drive(client, read_folder(folder).model_copy(update={"target": chosen}), screen)
    screen.finish(report)
    if json:
        print(report.model_dump_json(indent=2))
    return report
