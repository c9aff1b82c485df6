"""`hiera-mcp demo`: the whole loop on a shipped task, against a real server over stdio."""

import argparse

import anyio

from hiera_mcp.cli.connection import connected
from hiera_mcp.cli.options import add_json, add_plan, add_settings, settings_of
from hiera_mcp.cli.report import Screen
from hiera_mcp.client.drive import drive
from hiera_mcp.client.folder import read_folder
from hiera_mcp.client.preflight import ask_doctor, demo_folder, pick_target
from hiera_mcp.client.report import RunReport
from hiera_mcp.model.space import is_cpu
from hiera_mcp.model.work import DoctorReport
from hiera_mcp.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_settings(parser)
    add_json(parser)
    parser.add_argument("--target", help="cpu or cuda:sm_NN (default: the GPU's where there is one, else cpu)")
    add_plan(parser)


def run(args: argparse.Namespace) -> int:
    report = anyio.run(_demo, settings_of(args), args.target, args.json)
    return 0 if report.best else 1


async def _demo(settings: Settings, target: str | None, json: bool) -> RunReport:
    screen = Screen(quiet=json)
    if not json:
        print(f"Data in {settings.data_dir}", flush=True)
    screen.starting()
    async with connected(settings) as client:
        report = await ask_doctor(client)
        chosen = pick_target(report, target)
        folder = demo_folder(chosen)
        screen.clear()
        if not json:
            print("\n".join([*_unused_gpu(report, chosen), f"Task and candidates in {folder}", ""]), flush=True)
        result = await drive(client, read_folder(folder).model_copy(update={"target": chosen}), screen)
    screen.finish(result)
    if json:
        print(result.model_dump_json(indent=2))
    return result


def _unused_gpu(report: DoctorReport, chosen: str) -> list[str]:
    """Why a GPU that is present is passed over."""
    why = [t.reason for t in report.targets if not is_cpu(t.target) and not t.runs]
    return [f"A GPU is present but not used: {why[0]}"] if report.gpus and is_cpu(chosen) and why else []
