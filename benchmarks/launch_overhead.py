"""What one boxed launch costs: from the call to the point at which nothing of the box is left. Wanted: less than 40 ms.

    python -m benchmarks.launch_overhead [--launches N] [--out FILE]

Times programs that do nothing, so that everything measured is overhead. The kinds are interleaved, because the load of the
machine drifts; on a machine that is not quiet compare the minima and the processor times, which a neighbour hardly moves, or
start it with `chrt -f 1`.
"""

import argparse
import asyncio
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import describe
from hiera_mcp.errors import NoIsolationError
from hiera_mcp.sandbox.isolation import binds, probe
from hiera_mcp.sandbox.isolation.box import BoxLimits, BoxSpec, Isolation
from hiera_mcp.sandbox.isolation.bubblewrap import Bubblewrap
from hiera_mcp.sandbox.isolation.folders import discard
from hiera_mcp.sandbox.isolation.landlock import Landlock
from hiera_mcp.sandbox.isolation.process import run
from hiera_mcp.sandbox.isolation.unsafe import Unsafe

WANTED_MS = 40.0
LIMITS = BoxLimits(memory_bytes=1 << 30)
Launch = Callable[[], Awaitable[object]]


@dataclass(frozen=True)
class Cost:
    """Of one launch, in milliseconds."""

    wall: float
    processor: float
    """User and system time of all that was started and reaped."""


def kinds(work: Path) -> dict[str, Launch]:
    """Name → one launch. The smallest box runs `true`; the others the interpreter, which may have to be staged for them."""

    def boxed(backend: Isolation, *argv: str, python: bool = False) -> Launch:
        visible = (*binds.python_binds(), *binds.child_binds()) if python else ()
        spec = BoxSpec(argv, work, LIMITS, binds=visible, env=binds.child_env() if python else {})
        return lambda: run(backend, spec, 60)

    backends: list[Isolation] = [Landlock(), Unsafe()]
    backends += [Bubblewrap()] if shutil.which("bwrap") else []
    found: dict[str, Launch] = {"plain, true": plain("true"), "plain, python -S": plain(sys.executable, "-S", "-c", "")}
    for backend in backends:
        found[f"{backend.name}, true"] = boxed(backend, "true")
        found[f"{backend.name}, python -S"] = boxed(backend, sys.executable, "-S", "-c", "", python=True)
    return found


def plain(*argv: str) -> Launch:
    """The same program without a box."""

    async def launch() -> None:
        process = await asyncio.create_subprocess_exec(*argv, stdin=subprocess.DEVNULL)
        await process.wait()

    return launch


async def measure(work: Path, launches: int) -> dict[str, list[Cost]]:
    """The cost of each launch."""
    costs: dict[str, list[Cost]] = {}
    for number in range(launches + 1):
        for name, launch in kinds(work).items():
            cost = await measured(launch)
            if number:  # the first round fills caches
                costs.setdefault(name, []).append(cost)
    return costs


async def measured(launch: Launch) -> Cost:
    spent, begin = _spent(), time.perf_counter()
    await launch()
    return Cost((time.perf_counter() - begin) * 1e3, (_spent() - spent) * 1e3)


def _spent() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


async def choosing() -> float | str:
    """Milliseconds until a backend is chosen, once at the start of a launcher; or why none is."""
    begin = time.perf_counter()
    try:
        await probe.choose()
    except NoIsolationError as e:
        return e.what
    return round((time.perf_counter() - begin) * 1e3, 1)


def report(costs: dict[str, list[Cost]], chosen: float | str) -> dict[str, object]:
    return {
        "what": "one launch of a program that does nothing, milliseconds",
        "wanted_below_ms": WANTED_MS,
        "machine": {
            **describe(),
            "kernel": platform.release(),
            "architecture": platform.machine(),
            "load": [round(load, 2) for load in os.getloadavg()],
            "real_time_priority": os.sched_getscheduler(0) != os.SCHED_OTHER,
            "uid": os.geteuid(),
        },
        "launches": len(next(iter(costs.values()))),
        "choosing_a_backend_ms": chosen,
        "wall_ms": {name: spread([cost.wall for cost in all_]) for name, all_ in costs.items()},
        "processor_ms": {name: spread([cost.processor for cost in all_]) for name, all_ in costs.items()},
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    return {
        "median": round(statistics.median(values), 2),
        "min": round(min(values), 2),
        "max": round(max(values), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=40)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="hiera-launch-"))
    try:
        costs = asyncio.run(measure(work, options.launches))
    finally:
        discard(work)
    text = json.dumps(report(costs, asyncio.run(choosing())), indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
