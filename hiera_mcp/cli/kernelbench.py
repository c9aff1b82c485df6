"""`hiera-mcp contract build --kernelbench PATH`: the contracts of many tasks, with a bar, an index and a summary."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import anyio

from hiera_mcp.cli.connection import local
from hiera_mcp.cli.output import ProgressLine, table
from hiera_mcp.client.batch import Options, Row, build_all, write_atomically
from hiera_mcp.client.batch_summary import as_json, as_markdown, by_level
from hiera_mcp.client.kernelbench import (
    HUB,
    LEVELS,
    Problem,
    chosen,
    parse_choice,
    parse_levels,
    read_checkout,
    read_hub,
)
from hiera_mcp.client.session import Session
from hiera_mcp.errors import RequestError
from hiera_mcp.settings import Settings

HUGGINGFACE = "huggingface"
BAR = 24
PLAIN_PAUSE_S = 10.0
"""Without a terminal, a line this often."""
STOPPED = 130
"""Exit status after Ctrl-C."""


def add_arguments(build: argparse.ArgumentParser) -> None:
    """The arguments of a batch."""
    group = build.add_argument_group("all of KernelBench")
    source = f"a checkout of KernelBench, its folder KernelBench/, or `{HUGGINGFACE}` for the published data set"
    group.add_argument("--kernelbench", metavar="PATH", help=source)
    group.add_argument("--all", action="store_true", help="all tasks of the levels (default: levels 1, 2, 3)")
    group.add_argument("--level", metavar="N[,N…]", help="all tasks of these levels")
    group.add_argument(
        "--task", action="append", default=[], metavar="LEVEL/NUMBER", help="one task, for example 2/76; repeatable"
    )
    group.add_argument("--jobs", type=int, metavar="N", help="tasks at the same time (default: number of processors)")
    group.add_argument("--force", action="store_true", help="build also what an earlier run has built")


def run(args: argparse.Namespace, settings: Settings, options: Options) -> int:
    """Build what the arguments name. 0: all were built; 1: some failed."""
    jobs = _check(args)
    problems = anyio.run(_problems, args)
    screen = Screen(len(problems))
    try:
        rows = anyio.run(_build, args, settings, options, problems, jobs, screen)
    except KeyboardInterrupt:
        screen.clear()
        print(f"hiera-mcp: stopped; {screen.done} of {len(problems)} are done. {_GO_ON}", file=sys.stderr)
        return STOPPED
    screen.clear()
    write_atomically(args.out / "summary.json", as_json(rows))
    write_atomically(args.out / "summary.md", as_markdown(rows))
    print(as_json(rows) if args.json else "\n".join(closing(rows, args.out)))
    return 1 if any(r.error for r in rows) else 0


_GO_ON = "The same command goes on from there."


def _check(args: argparse.Namespace) -> int:
    """How many jobs; what is missing is said before anything is read."""
    if args.out is None:
        raise RequestError("A folder for the contracts is missing.", todo="Name it with --out DIR.")
    if not (args.all or args.level or args.task):
        todo = "Say --all, --level 1,2 or --task 2/76."
        raise RequestError("Which tasks of KernelBench are meant?", todo=todo)
    if args.jobs is not None and args.jobs < 1:
        raise RequestError(f"{args.jobs} jobs cannot be run.", todo="Ask for 1 or more.")
    return args.jobs or len(os.sched_getaffinity(0))


async def _problems(args: argparse.Namespace) -> list[Problem]:
    choices = [parse_choice(text) for text in args.task]
    levels = parse_levels(args.level) if args.level else LEVELS
    if choices and not (args.level or args.all):
        levels = tuple(sorted({level for level, _ in choices}))
    if args.kernelbench == HUGGINGFACE or args.kernelbench.startswith(("http://", "https://")):
        found = await read_hub(levels, HUB if args.kernelbench == HUGGINGFACE else args.kernelbench)
    else:
        found = read_checkout(Path(args.kernelbench).expanduser(), levels)
    return chosen(found, choices)


async def _build(
    args: argparse.Namespace, settings: Settings, options: Options, problems: list[Problem], jobs: int, screen: "Screen"
) -> list[Row]:
    screen.show("starting")
    async with local(settings) as client:
        return await build_all(Session(client), problems, args.out, options, jobs, args.force, screen.tell)


class Screen:
    """The bar of a batch. Failures stay on the screen as they happen."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._line = ProgressLine(PLAIN_PAUSE_S)
        self._start = time.monotonic()
        self._kept = 0
        self._failed = 0
        self.done = 0

    def tell(self, row: Row, kept: bool) -> None:
        """One more task is done; `kept`: an earlier run had built it."""
        self.done += 1
        self._kept += kept
        self._failed += bool(row.error)
        if row.error:
            self.clear()
            print(f"{row.task}: failed: {row.error.splitlines()[0]}", file=sys.stderr, flush=True)
        self.show(row.task)

    def show(self, last: str) -> None:
        left = time_left(self.done - self._kept, self._total - self.done, time.monotonic() - self._start)
        self._line.show(bar(self.done, self._total, self._failed, left, last), None)

    def clear(self) -> None:
        """Make room for other output."""
        self._line.clear()


def time_left(built: int, missing: int, seconds: float) -> float | None:
    """Seconds that the missing ones will take at the pace so far; None while there is none."""
    return missing * seconds / built if built else None


def bar(done: int, total: int, failed: int, left: float | None, last: str) -> str:
    """`████░░░░ 12/250, 1 failed, 3:20 left, level1/12_Name`."""
    full = BAR * done // max(1, total)
    parts = [f"{'█' * full}{'░' * (BAR - full)} {done}/{total}"]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{int(left) // 60}:{int(left) % 60:02d} left"] if left is not None and done < total else []
    return ", ".join([*parts, last])


def closing(rows: Sequence[Row], out: Path) -> list[str]:
    """The table by level, the failures, and where all is."""
    levels = [(str(v.level), str(v.built), str(v.failed), f"{v.seconds:.1f}") for v in by_level(rows)]
    lines = table(("level", "built", "failed", "seconds"), levels)
    failed = [r for r in rows if r.error]
    if failed:
        lines += ["", f"{len(failed)} failed:", *(f"  {r.task}: {r.error}" for r in failed)]
    return [*lines, "", f"{out / 'summary.md'}, {out / 'summary.json'}"]
