"""What one boxed launch costs: from the call to the point at which nothing of the box is left.

    python benchmarks/launch_overhead.py [--launches N] [--out FILE]

Times `true`, so that everything measured is overhead. The kinds are interleaved, because the load of the machine drifts;
compare the minima on a machine that is not quiet.
"""

import argparse
import asyncio
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from hiera_mcp.sandbox.isolation import binds, probe
from hiera_mcp.sandbox.isolation.box import BoxLimits, BoxSpec, Isolation
from hiera_mcp.sandbox.isolation.bubblewrap import Bubblewrap
from hiera_mcp.sandbox.isolation.folders import discard
from hiera_mcp.sandbox.isolation.landlock import Landlock
from hiera_mcp.sandbox.isolation.process import run
from hiera_mcp.sandbox.isolation.unsafe import Unsafe

LIMITS = BoxLimits(memory_bytes=1 << 30)
Launch = Callable[[], Awaitable[object]]


def kinds(work: Path) -> dict[str, Launch]:
    """Name → one launch. The second bubblewrap kind binds the interpreter, which may have to be staged."""

    def boxed(backend: Isolation, *argv: str, python: bool = False) -> Launch:
        visible = (*binds.python_binds(), *binds.child_binds()) if python else ()
        spec = BoxSpec(argv, work, LIMITS, binds=visible, env=binds.child_env() if python else {})
        return lambda: run(backend, spec, 60)

    found: dict[str, Launch] = {
        "plain": plain,
        "unsafe": boxed(Unsafe(), "true"),
        "landlock": boxed(Landlock(), "true"),
    }
    if shutil.which("bwrap"):
        found["bubblewrap"] = boxed(Bubblewrap(), "true")
        found["bubblewrap, interpreter bound"] = boxed(Bubblewrap(), "true", python=True)
        found["bubblewrap, interpreter started"] = boxed(Bubblewrap(), sys.executable, "-S", "-c", "", python=True)
    found["choose a backend"] = probe.choose
    return found


async def plain() -> None:
    """The same program without a box."""
    process = await asyncio.create_subprocess_exec("true", stdin=subprocess.DEVNULL)
    await process.wait()


async def measure(work: Path, launches: int) -> dict[str, list[float]]:
    """Milliseconds of each launch."""
    times: dict[str, list[float]] = {}
    for number in range(launches + 1):
        for name, launch in kinds(work).items():
            begin = time.perf_counter()
            await launch()
            if number:  # the first round fills caches
                times.setdefault(name, []).append((time.perf_counter() - begin) * 1e3)
    return times


def report(times: dict[str, list[float]]) -> dict[str, object]:
    return {
        "what": "one boxed launch of `true`, milliseconds",
        "machine": {
            "kernel": platform.release(),
            "architecture": platform.machine(),
            "processors": os.cpu_count(),
            "load": os.getloadavg(),
            "python": platform.python_version(),
            "uid": os.geteuid(),
        },
        "launches": len(next(iter(times.values()))),
        "milliseconds": {
            name: {"median": round(statistics.median(all_), 2), "min": round(min(all_), 2), "max": round(max(all_), 2)}
            for name, all_ in times.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=20)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="hiera-launch-"))
    try:
        text = json.dumps(report(asyncio.run(measure(work, options.launches))), indent=2)
    finally:
        discard(work)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
