"""What the planning tools cost, through a real MCP client and a real server.

    python -m benchmarks.planning_latency [--calls N] [--candidates N] [--out FILE]

The demo's task is built and a run is led to the end of its first round, with candidates that passed and failed and a profile
of the best one; then each planning tool is called, over stdio and over HTTP, without recording (evidence and
recommendation); and with recording, in new runs. Milliseconds of the whole call, as the client sees it; a tool that does
nothing shows what the protocol and the client cost. The processor's load when it began is in the result.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from mcp import Client
from pydantic import JsonValue

from benchmarks.machine import describe
from hiera_mcp.client.connect import over_http, over_stdio
from hiera_mcp.client.folder import read_folder
from hiera_mcp.client.preflight import demo_folder
from hiera_mcp.client.script import Script
from hiera_mcp.client.session import Session

RECOMMENDED: dict[str, JsonValue] = {"choice": "recommended"}
KINDS = ("space", "direction", "strategy")
LIMIT_MS = 50.0
"""Of the 95th percentile."""


async def prepared(session: Session, script: Script, candidates: int) -> tuple[str, str, str]:
    """A contract, a planned run of it with candidates, and its best candidate; the candidates are the demo's, over and over."""
    built = await session.work("hiera_contract_build", source=script.source, name=script.name, target="cpu")
    contract_id: str = built["contract"]["contract_id"]
    run_id = await started(session, contract_id, candidates)
    for kind in KINDS:
        await session.call(f"hiera_plan_{kind}", run_id=run_id, **RECOMMENDED)
    pool = [c for one in script.rounds for c in one.candidates]
    for n in range(candidates):
        sources = {built["contract"]["source_file"]: next(iter(pool[n % len(pool)].sources.values()))}
        one: list[JsonValue] = [{"name": f"c{n}", "sources": dict[str, JsonValue](sources)}]
        await session.work("hiera_candidates_evaluate", run_id=run_id, candidates=one)
    status = await session.call("hiera_run_status", run_id=run_id)
    best: str = status["best"]["candidate_id"]
    await session.work("hiera_candidate_profile", candidate_id=best)
    return contract_id, run_id, best


async def started(session: Session, contract_id: str, candidates: int) -> str:
    """A new run."""
    answer = await session.call("hiera_run_start", contract_id=contract_id, candidates_per_round=candidates)
    return answer["run_id"]


async def timed(session: Session, calls: int, tool: str, **arguments: JsonValue) -> dict[str, float]:
    """Milliseconds of `calls` calls of a tool, one after another."""
    return summary([await seconds_of(session, tool, **arguments) for _ in range(calls)])


async def seconds_of(session: Session, tool: str, **arguments: JsonValue) -> float:
    began = time.perf_counter()
    await session.call(tool, **arguments)
    return time.perf_counter() - began


async def recorded(session: Session, calls: int, contract_id: str) -> dict[str, dict[str, float]]:
    """Tool → milliseconds of recording the recommendation, each in a run of its own: no run has a hundred decisions."""
    found: dict[str, list[float]] = {f"hiera_plan_{kind}": [] for kind in KINDS}
    for _ in range(calls):
        run_id = await started(session, contract_id, 6)
        for tool, seconds in found.items():
            seconds.append(await seconds_of(session, tool, run_id=run_id, **RECOMMENDED))
    return {f"{tool}, recorded": summary(seconds) for tool, seconds in found.items()}


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """Median, 95th percentile and greatest, in milliseconds."""
    ms = [1e3 * s for s in seconds]
    percentiles = statistics.quantiles(ms, n=20, method="inclusive")
    return {"median": round(statistics.median(ms), 2), "p95": round(percentiles[-1], 2), "most": round(max(ms), 2)}


async def measured(client: Client, script: Script, calls: int, candidates: int) -> dict[str, dict[str, float]]:
    """Tool → milliseconds, on one connection."""
    session = Session(client)
    contract_id, run_id, best = await prepared(session, script, candidates)
    profile = f"hiera://candidates/{best}/profile"
    found = {"nothing (hiera_guide)": await timed(session, calls, "hiera_guide", topic="ssda")}
    found["hiera_run_status"] = await timed(session, calls, "hiera_run_status", run_id=run_id)
    for kind in KINDS:
        tool = f"hiera_plan_{kind}"
        found[tool] = await timed(session, calls, tool, run_id=run_id)
    found |= await recorded(session, calls, contract_id)
    found["hiera_artifact_read of the profile"] = await timed(session, calls, "hiera_artifact_read", uri=profile)
    return found


@contextmanager
def http_server(data_dir: Path) -> Generator[str]:
    """A server on a free port; its URL."""
    command = [sys.executable, "-m", "hiera_mcp", "serve", "--http", "--port", "0", "--data-dir", str(data_dir)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            lines = iter(process.stderr.readline, "")
            yield next(found[0] for line in lines if (found := re.search(r"http://\S+/mcp", line)))
        finally:
            process.terminate()


@asynccontextmanager
async def connected(way: str, folder: Path) -> AsyncGenerator[Client]:
    """A client of a new server with a new database."""
    data = folder / way
    if way == "http":
        with http_server(data) as url:
            async with over_http(url) as client:
                yield client
        return
    with (folder / "log").open("w") as log:
        async with over_stdio(os.environ | {"HIERA_DATA_DIR": str(data)}, log) as client:
            yield client


@dataclass(frozen=True)
class Result:
    """What was measured."""

    worst: dict[str, float]
    """Way → greatest 95th percentile of a planning tool, in milliseconds."""
    text: str
    """All of it as JSON."""


async def run(calls: int, candidates: int) -> Result:
    script = read_folder(demo_folder("cpu"))
    load = os.getloadavg()[0]
    ways: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for way in ("stdio", "http"):
            async with connected(way, Path(folder)) as client:
                ways[way] = await measured(client, script, calls, candidates)
    worst = {way: max(r["p95"] for name, r in rows.items() if "_plan_" in name) for way, rows in ways.items()}
    report = {
        "calls": calls,
        "candidates": candidates,
        "load_at_start": round(load, 2),
        "limit_ms": LIMIT_MS,
        "worst_planning_p95_ms": worst,
        "milliseconds": ways,
        "host": describe(),
    }
    return Result(worst, json.dumps(report, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100, help="of each tool")
    parser.add_argument("--candidates", type=int, default=6, help="of the run")
    parser.add_argument("--out", type=Path, help="file for the result as JSON")
    args = parser.parse_args()
    result = anyio.run(run, args.calls, args.candidates)
    print(result.text, end="")
    if args.out:
        args.out.write_text(result.text)
    return 0 if max(result.worst.values()) < LIMIT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
