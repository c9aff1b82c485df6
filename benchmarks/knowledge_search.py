"""What a search in a large knowledge base costs, with several clients at once.

    python -m benchmarks.knowledge_search [--entries N] [--clients N] [--requests N] [--pause S] [--out FILE]

The entries are copies of the shipped ones with words of their own, read from a folder as a user's own are. Timed are, in
milliseconds, the search itself (threads calling the index), hiera_knowledge_search over HTTP, and a tool that does
nothing on the same server, which is what the protocol costs. Over HTTP each client either asks again at once, so that the
server's one event loop is saturated and a request waits for those of all others, or after a pause. No query is asked
twice. benchmarks/mcp_load.py says what the two kinds of clients are.
"""

import argparse
import contextlib
import itertools
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import anyio

from benchmarks.machine import describe
from hiera_mcp.deps import open_deps
from hiera_mcp.knowledge_base.entries import packaged_entries
from hiera_mcp.knowledge_base.index import KnowledgeBase
from hiera_mcp.model.base import Model
from hiera_mcp.model.knowledge import Entry
from hiera_mcp.server import create_server
from hiera_mcp.serving.http import MCP_PATH, application, bind, serve_app, transport_security
from hiera_mcp.settings import Settings
from hiera_mcp.tools.base import READS

WORDS = 4
"""Of a query."""
HOST = "127.0.0.1"
SEARCH = "hiera_knowledge_search"
ROWS = (("nothing", "plain"), (SEARCH, "plain"), (SEARCH, "sdk"))
"""Tools and clients over HTTP."""


class Nothing(Model):
    """The answer of a tool that does nothing."""

    next_step: str = "none"


async def nothing(query: str) -> Nothing:
    """What the protocol costs."""
    return Nothing()


def write_entries(folder: Path, count: int) -> None:
    """Copies of the shipped entries; each has an id and a few words of its own."""
    for number, entry in zip(range(count), itertools.cycle(packaged_entries()), strict=False):
        slug = f"{entry.id}-{number}"
        front = entry.model_dump(mode="json", exclude={"id", "body", "overrides"})
        body = f"Variant {number}: tile{number % 97} stage{number % 31} case{number}. {entry.body}"
        text = json.dumps({"id": slug, **front}, ensure_ascii=False)
        text = re.sub(r"\b(\d)e-", r"\1.0e-", text)  # is YAML as well, in which a number has a point
        (folder / f"{slug}.md").write_text(f"---\n{text}\n---\n{body}\n", encoding="utf-8")


def queries(entries: Sequence[Entry], count: int) -> Iterator[list[str]]:
    """Lists of queries, each a few words of one entry's title, steps and text, as they stand there."""
    draw = random.Random(5)
    texts = [" ".join([entry.title, *entry.steps, entry.body]).split() for entry in entries]
    while True:
        yield [" ".join(draw.choices(draw.choice(texts), k=WORDS)) for _ in range(count)]


def searched(base: KnowledgeBase, asked: Sequence[str]) -> list[float]:
    """Milliseconds of each search of one thread; the first tenth is a warm-up."""
    times = list[float]()
    for query in asked:
        begin = time.perf_counter()
        base.search(query)
        times.append((time.perf_counter() - begin) * 1e3)
    return times[len(times) // 10 :]


def in_threads(base: KnowledgeBase, asked: Sequence[str], threads: int) -> dict[str, float]:
    with ThreadPoolExecutor(threads) as pool:
        found = pool.map(partial(searched, base), [asked[n::threads] for n in range(threads)])
    return summary(list(itertools.chain.from_iterable(found)))


def summary(times: Sequence[float]) -> dict[str, float]:
    return {
        "median": round(statistics.median(times), 3),
        "p95": round(statistics.quantiles(times, n=20)[-1], 3),
        "max": round(max(times), 3),
        "requests": len(times),
    }


async def serve(folder: Path, data: Path, port: int) -> None:
    """The project's server with one more tool, until it is ended."""
    with bind(HOST, port) as listener:
        async with open_deps(Settings(data_dir=data, cache_dir=data / "cache", knowledge_dir=folder)) as deps:
            deps.knowledge.prepare()  # as serve_http does
            server = create_server(partial(contextlib.nullcontext, deps))
            server.add_tool(nothing, "nothing", "Nothing", "Does nothing.", READS)
            await serve_app(application(server, None, transport_security(HOST, ())), listener, anyio.Event())


@contextlib.contextmanager
def server(folder: Path, data: Path) -> Generator[tuple[int, str]]:
    """The same in a process of its own, once it answers; yields its process id and address."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "benchmarks.knowledge_search", "--serve", str(folder), str(data), str(port)]
    process = subprocess.Popen(command)
    try:
        url = f"http://{HOST}:{port}{MCP_PATH}"
        _wait(url, process)
        yield process.pid, url
    finally:
        process.terminate()
        process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], patience: float = 120) -> None:
    end = time.monotonic() + patience
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(subprocess.CalledProcessError):
            calls(url, "nothing", "plain", ["ready?"], 1, 0.0)
            return
        time.sleep(0.5)
    raise SystemExit("The server did not start.")


def calls(url: str, tool: str, client: str, asked: Sequence[str], clients: int, pause: float) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.mcp_load", url, tool, f"--clients={clients}", f"--pause={pause}"]
    command += ["--sdk"] if client == "sdk" else []
    ready = None if asked[1:] else subprocess.DEVNULL  # while the server starts, its refusals are of no interest
    done = subprocess.run(command, input=json.dumps(asked), stdout=subprocess.PIPE, stderr=ready, text=True, check=True)
    return json.loads(done.stdout)


def processor_seconds(process: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def over_http(
    process: int, url: str, tool: str, client: str, asked: Sequence[str], clients: int, pause: float
) -> dict[str, float]:
    """Times of a tool, and what one call takes of the server's processor."""
    before = processor_seconds(process)
    times = calls(url, tool, client, asked, clients, pause)
    spent = (processor_seconds(process) - before) / len(asked) * 1e3
    return {**summary(times), "server_processor": round(spent, 3)}


def measure(folder: Path, data: Path, options: argparse.Namespace) -> dict[str, object]:
    begin = time.perf_counter()
    base = KnowledgeBase.load(folder)
    seconds = time.perf_counter() - begin
    asked = queries(base.entries, options.requests)
    times: dict[str, object] = {"search alone, threads": in_threads(base, next(asked), options.clients)}
    with server(folder, data) as (process, url):
        for (tool, client), pause in itertools.product(ROWS, (0.0, options.pause)):
            name = f"{tool} over HTTP, {client} client, {'after a pause' if pause else 'at once again'}"
            times[name] = over_http(process, url, tool, client, next(asked), options.clients, pause)
    return {"loading_seconds": round(seconds, 2), "milliseconds": times}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--requests", type=int, default=2_000, help="of all clients together, per row")
    parser.add_argument("--pause", type=float, default=0.4, help="mean seconds between two requests of a client")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        anyio.run(serve, Path(options.serve[0]), Path(options.serve[1]), int(options.serve[2]))
        return
    with tempfile.TemporaryDirectory(prefix="hiera-knowledge-") as scratch:
        folder, data = Path(scratch, "entries"), Path(scratch, "data")
        folder.mkdir()
        write_entries(folder, options.entries)
        what = f"searches in {options.entries} entries by {options.clients} clients at once"
        row = {"what": what, "pause": options.pause, "machine": describe(), **measure(folder, data, options)}
    text = json.dumps(row, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
