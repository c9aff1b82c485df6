"""compute-sanitizer from the outside: where it lies, and its command line. Pure but for looking; nothing is started here.

Like ncu it runs *inside* the box, with the runner as its child. Flags: Compute Sanitizer documentation, 2025.3 (CUDA 13.0).
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from hiera_mcp.model.sanitizer import SanitizerTool
from hiera_mcp.sandbox.isolation.box import Bind

NAME = "compute-sanitizer"
MOST_REPORTS = 400
"""Reports that a tool prints; one defect brings one for each thread."""
PADDING = 512
"""Bytes after each allocation that belong to nobody, so that an access a little too far does not hit the next one."""
CONNECT_S = 120
"""So long may the target take until it uses CUDA: the runner waits for its judge, which draws parameters first."""
_OWN: dict[SanitizerTool, tuple[str, ...]] = {
    "memcheck": (
        *("--leak-check", "full", "--padding", str(PADDING), "--report-api-errors", "explicit"),
        *("--destroy-on-device-error", "kernel"),
    ),
    "racecheck": ("--racecheck-report", "analysis"),
    "initcheck": (),
    "synccheck": (),
}
"""Options of each tool. With `kernel` a bad access ends its kernel alone, and the next case is looked at too."""


def find() -> Path | None:
    """compute-sanitizer on the PATH, beside nvcc, or in the place where the toolkit is installed."""
    nvcc = shutil.which("nvcc")
    found = shutil.which(NAME)
    candidates = [
        *([Path(found)] if found else []),
        *([Path(nvcc).resolve().parent / NAME] if nvcc else []),
        Path("/usr/local/cuda/bin") / NAME,
        Path("/usr/local/cuda") / NAME / NAME,
    ]
    return next((c.resolve() for c in candidates if c.is_file()), None)


def binds(program: Path) -> tuple[Bind, ...]:
    """What a box must show so that it runs: its folder, and the one beside `bin` that holds its libraries."""
    folders = (program.parent, program.parent.parent / NAME)
    return tuple(Bind(f, str(f)) for f in folders if f.is_dir() and not f.is_relative_to("/usr"))


def command(program: Path, tool: SanitizerTool, target: Sequence[str], log: str) -> tuple[str, ...]:
    """The command line that runs `target` under one tool.

    Args:
        target: the runner's command line.
        log: file for the tool's own output, so that the target's does not mix with it.
    """
    common = ("--log-file", log, "--print-limit", str(MOST_REPORTS), "--launch-timeout", str(CONNECT_S))
    return (str(program), "--tool", tool, *common, *_OWN[tool], *target)
