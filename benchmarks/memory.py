"""Memory of this host, and of a process with everything below it."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

EVERY_S = 0.2


def total() -> int:
    """Bytes of memory of this host."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def peak_of_tree(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process; the most bytes that it and its descendants held at once, sampled five times a second.

    Proportional set size: a page that several processes share counts once. What is shorter than a sample is missed.
    """
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(map(_held, _tree(process.pid))))
        time.sleep(EVERY_S)
    return peak


def _tree(root: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            children.setdefault(_parent(entry), []).append(int(entry.name))
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += children.get(pid, [])


def _parent(entry: Path) -> int:
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _held(pid: int) -> int:
    """Proportional set size, else resident set size, else 0 when the process has gone."""
    for name, key in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/{name}").read_text().splitlines()
            return next((int(line.split()[1]) << 10 for line in lines if line.startswith(key)), 0)
    return 0
