"""What a search in a large knowledge base costs, with several clients at once.

    python -m benchmarks.knowledge_search [--entries N] [--clients N] [--requests N] [--pause S] [--out FILE]

The entries are copies of the shipped ones with words of their own, read from a folder as a user's own are. Three things
are timed, in milliseconds: the search itself (threads calling the index), hiera_knowledge_search over HTTP, and a tool
that does nothing on the same server, which is what the protocol costs. Over HTTP each client either asks again at once,
so that the server's one event loop is saturated and a request waits for those of all others, or after a pause.
"""

import argparse
import contextlib
import http.client
import itertools
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from benchmarks.machine import describe
from hiera_mcp.deps import Deps, open_deps
from hiera_mcp.knowledge_base.entries import packaged_entries
from hiera_mcp.knowledge_base.index import KnowledgeBase
from hiera_mcp.model.base import Model
from hiera_mcp.model.knowledge import Entry
from hiera_mcp.server import create_server
from hiera_mcp.settings import Settings
from hiera_mcp.tools.base import READS

HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
WORDS = 4
"""Of a query."""
Ask = Callable[[str], object]


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


def queries(entries: Sequence[Entry], count: int) -> list[str]:
    """Each a few words of one entry's title, steps and text, as they stand there."""
    draw = random.Random(5)
    texts = [" ".join([entry.title, *entry.steps, entry.body]).split() for entry in entries]
    return [" ".join(draw.choices(draw.choice(texts), k=WORDS)) for _ in range(count)]


def timed(ask: Ask, asked: Sequence[str], *, pause: float) -> list[float]:
    """Milliseconds of each request of one client."""
    draw, times = random.Random(asked[0]), list[float]()
    for query in asked:
        time.sleep(draw.uniform(0, 2 * pause))
        begin = time.perf_counter()
        ask(query)
        times.append((time.perf_counter() - begin) * 1e3)
    return times


def many(clients: Sequence[Ask], asked: Sequence[str], pause: float = 0.0) -> dict[str, float]:
    """All clients at once, each with its share of the queries; the first tenth of each is a warm-up."""
    shares = [asked[n :: len(clients)] for n in range(len(clients))]
    with ThreadPoolExecutor(len(clients)) as pool:
        found = pool.map(partial(timed, pause=pause), clients, shares)
    return summary([ms for times in found for ms in times[len(times) // 10 :]])


def summary(times: Sequence[float]) -> dict[str, float]:
    return {
        "median": round(statistics.median(times), 3),
        "p95": round(statistics.quantiles(times, n=20)[-1], 3),
        "max": round(max(times), 3),
        "requests": len(times),
    }


def serve(folder: Path, data: Path, port: int) -> None:
    """The project's server with one more tool, until it is ended."""

    @contextlib.asynccontextmanager
    async def deps() -> AsyncGenerator[Deps]:
        async with open_deps(Settings(data_dir=data, cache_dir=data / "cache", knowledge_dir=folder)) as opened:
            yield opened

    server = create_server(deps)
    server.add_tool(nothing, "nothing", "Nothing", "Does nothing.", READS)
    uvicorn.run(server.streamable_http_app(), port=port, log_level="warning")


@contextlib.contextmanager
def server(folder: Path, data: Path, port: int) -> Generator[None]:
    """The same in a process of its own, once it answers."""
    command = [sys.executable, "-m", "benchmarks.knowledge_search", "--serve", str(folder), str(data), str(port)]
    process = subprocess.Popen(command)
    try:
        _wait(port, process)
        yield
    finally:
        process.terminate()
        process.wait()


def _wait(port: int, process: subprocess.Popen[bytes], patience: float = 120) -> None:
    end = time.monotonic() + patience
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError):
            client(port, "nothing")("ready?")
            return
        time.sleep(0.2)
    raise SystemExit("The server did not start.")


def client(port: int, tool: str) -> Ask:
    """A session of its own that calls one tool, over one connection. It speaks JSON-RPC directly: an SDK's client would
    take as much of the processor as the server does."""
    connection, session = http.client.HTTPConnection("127.0.0.1", port), dict[str, str]()
    numbers = itertools.count(1)

    def post(method: str, params: dict[str, Any], **identity: int) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **identity})
        connection.request("POST", "/mcp", body, HEADERS | session)
        answer = connection.getresponse()
        session.update({k: v for k, v in answer.getheaders() if k.lower() == "mcp-session-id"})
        return answer.read()

    def ask(query: str) -> None:
        text = post("tools/call", {"name": tool, "arguments": {"query": query}}, id=next(numbers))
        if b"next_step" not in text:
            raise SystemExit(f"{tool} answered {text[:500]!r}")

    me = {"name": "benchmark", "version": "1"}
    post("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": me}, id=0)
    post("notifications/initialized", {})
    return ask


def measure(folder: Path, data: Path, options: argparse.Namespace) -> dict[str, object]:
    begin = time.perf_counter()
    base = KnowledgeBase.load(folder)
    seconds = time.perf_counter() - begin
    asked = queries(base.entries, options.requests)
    times: dict[str, object] = {"search alone, threads": many([base.search] * options.clients, asked)}
    with server(folder, data, options.port):
        for tool in ("nothing", "hiera_knowledge_search"):
            clients = [client(options.port, tool) for _ in range(options.clients)]
            times[f"{tool} over HTTP, at once again"] = many(clients, asked)
            times[f"{tool} over HTTP, after a pause"] = many(clients, asked, options.pause)
    return {"loading_seconds": round(seconds, 2), "milliseconds": times}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--requests", type=int, default=2_000, help="of all clients together, per row")
    parser.add_argument("--pause", type=float, default=0.4, help="mean seconds between two requests of a client")
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(Path(options.serve[0]), Path(options.serve[1]), int(options.serve[2]))
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
