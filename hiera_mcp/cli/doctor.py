"""`hiera-mcp doctor`: what this host offers, and what to install."""

import argparse

import anyio

from hiera_mcp.cli.connection import local
from hiera_mcp.cli.options import add_json, add_settings, settings_of
from hiera_mcp.cli.output import table
from hiera_mcp.client.preflight import ask_doctor
from hiera_mcp.model.work import DoctorReport
from hiera_mcp.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_settings(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    report = anyio.run(_ask, settings_of(args))
    print(report.model_dump_json(indent=2) if args.json else "\n".join(lines_of(report)))
    return 0 if report.chosen and any(t.runs for t in report.targets) else 1


async def _ask(settings: Settings) -> DoctorReport:
    async with local(settings) as client:
        return await ask_doctor(client, thorough=True)


def lines_of(report: DoctorReport) -> list[str]:
    """The report as text."""
    isolation = [
        (i.backend, _mark(i.usable), "in use" if i.backend == report.chosen else i.reason) for i in report.isolation
    ]
    targets = [(t.target, _mark(t.compiles), _mark(t.runs), t.reason) for t in report.targets]
    return [
        *table(("isolation", "usable", ""), isolation),
        "",
        *table(("target", "compiles", "runs", ""), targets),
        "",
        *table(("tool", "version"), list(report.tools.items())),
        "",
        "GPUs: " + (", ".join(report.gpus) or "none"),
        *report.advice,
    ]


def _mark(good: bool) -> str:
    return "yes" if good else "no"
