"""`hiera-mcp doctor`: what this host offers, and what to install."""

import argparse
from collections.abc import Sequence

import anyio

from hiera_mcp.cli.connection import local
from hiera_mcp.cli.options import add_json, add_settings, settings_of
from hiera_mcp.cli.output import table
from hiera_mcp.client.preflight import ask_doctor
from hiera_mcp.model.work import DoctorReport, IsolationReport, Probe
from hiera_mcp.settings import Settings

ABSENT = ("ENOENT", "ENOTDIR", "ESRCH", "ECONNREFUSED")
"""What an attempt gets where the thing itself is not visible."""


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
        (i.backend, _mark(i.usable), _cost(i), "in use" if i.backend == report.chosen else i.reason)
        for i in report.isolation
    ]
    targets = [(t.target, _mark(t.compiles), _mark(t.runs), t.reason) for t in report.targets]
    return [
        *table(("isolation", "usable", "a launch", ""), isolation),
        "",
        *denials(report.isolation),
        "",
        *table(("target", "compiles", "runs", ""), targets),
        "",
        *table(("tool", "version"), list(report.tools.items())),
        "",
        "GPUs: " + (", ".join(report.gpus) or "none"),
        *report.advice,
    ]


def denials(isolation: Sequence[IsolationReport]) -> list[str]:
    """What a box of each backend let happen when it was tried, against what it must."""
    tried = [i for i in isolation if i.probes]
    seen = [{p.name: p for p in i.probes} for i in tried]
    wanted = {p.name: p.expected for i in tried for p in i.probes}
    rows = [(name.replace("_", " "), must, *(_observed(s.get(name)) for s in seen)) for name, must in wanted.items()]
    return table(("tried in a box", "must be", *(i.backend for i in tried)), rows)


def _observed(probe: Probe | None) -> str:
    """`denied` by a rule, or `absent`: there is nothing of that name to be had."""
    if probe is None:
        return "–"
    kind = "allowed" if probe.observed == "allowed" else "absent" if probe.observed in ABSENT else "denied"
    code = "" if kind == "allowed" else f" ({probe.observed})"
    return kind + code + ("" if probe.ok else "  ← must not be")


def _cost(isolation: IsolationReport) -> str:
    return "–" if isolation.launch_ms is None else f"{isolation.launch_ms:.0f} ms"


def _mark(good: bool) -> str:
    return "yes" if good else "no"
