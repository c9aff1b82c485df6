"""Nsight Compute from the outside: where it lies, and its command lines. Pure but for looking; nothing is started here.

ncu must run *inside* the box, with the runner as its child; with bwrap as its child it hangs. Flags: Nsight Compute CLI
documentation, 2025.3.
"""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from hiera_mcp.sandbox.isolation.box import Bind
from hiera_mcp.sandbox.profiling.metrics import SECTIONS, collected

MOST_LAUNCHES = 16
"""Launches of one call that are profiled; each is repeated once per group of counters."""

Page = Literal["raw", "details", "source", "lines"]
PAGES: tuple[Page, ...] = get_args(Page)
"""The last two are views of ncu's page `source`: by machine instruction, and by source line."""

_INSTALLED = Path("/opt/nvidia/nsight-compute")


def find() -> Path | None:
    """ncu on the PATH, or in the places where installers put it."""
    found = shutil.which("ncu")
    candidates = [Path(found)] if found else []
    candidates += [Path("/usr/local/cuda/bin/ncu"), *sorted(_INSTALLED.glob("*/ncu"), reverse=True)]
    return next((c.resolve() for c in candidates if c.is_file()), None)


def readers(ncu: Path) -> tuple[Path, ...]:
    """Folders that hold NVIDIA's reader of reports, `ncu_report`: beside ncu, then those of other installations, newest
    first. A reader must not be older than the ncu that wrote the report."""
    homes = [
        ncu.parent,
        *sorted(ncu.parent.parent.glob("nsight-compute-*"), reverse=True),
        *sorted(_INSTALLED.glob("*"), reverse=True),
    ]
    folders = (home / "extras" / "python" for home in homes)
    return tuple(dict.fromkeys(f.resolve() for f in folders if (f / "ncu_report.py").is_file()))


def version(ncu: Path) -> str:
    """Of the installation, by the name of its folder; empty where that says nothing."""
    found = [ncu, *readers(ncu)]
    return next((m[0] for path in found if (m := re.search(r"\d{4}\.\d+\.\d+", str(path)))), "")


def binds(ncu: Path) -> tuple[Bind, ...]:
    """What a box must show so that ncu runs: its installation. What is called ncu may be a script that calls the one in
    NVIDIA's own folder, so that is shown too."""
    folders = [ncu.parent, *([_INSTALLED] if _INSTALLED.is_dir() else [])]
    return tuple(Bind(folder, str(folder)) for folder in folders if not folder.is_relative_to("/usr"))


def record_command(ncu: Path, target: Sequence[str], report: str, log: str, major: int | None) -> tuple[str, ...]:
    """The command line that profiles what `target` launches between its cuProfilerStart and cuProfilerStop.

    Args:
        target: the runner's command line.
        report: file for the report, with its suffix .ncu-rep.
        log: file for ncu's own output, so that the target's does not mix with it.
        major: of the GPU's compute capability: a counter that it has not would be an error.
    """
    return (
        str(ncu),
        *("-o", report, "-f", "--log-file", log),
        *(part for section in SECTIONS for part in ("--section", section)),
        *("--metrics", ",".join(collected(major))),
        *("--clock-control", "none", "--cache-control", "all", "--target-processes", "all"),
        *("--profile-from-start", "off", "--launch-count", str(MOST_LAUNCHES)),
        *target,
    )


def page_command(ncu: Path, report: str, page: Page) -> tuple[str, ...]:
    """The command line that prints a page of a report as CSV. Needs no GPU."""
    view = ("source", "--print-source", "cuda,sass") if page == "lines" else (page,)
    return (str(ncu), "--import", report, "--page", *view, "--csv", "--print-units", "base")
