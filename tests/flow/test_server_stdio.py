"""The real server as a subprocess on stdio: it answers, and however it ends, no process of it is left."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from host_rates import with_host_rates

ENDLESS = "while True:\n    pass\n"
"""A reference whose tracing lasts until its limit, so that the server has work of its own below it."""
PATIENCE_S = 20.0
"""Much longer than anything here takes; only a server that hangs gets there."""

Message = dict[str, Any]


def initialize() -> Iterator[Message]:
    client = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    yield {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    yield {"jsonrpc": "2.0", "method": "notifications/initialized"}


def build_endlessly() -> Message:
    arguments = {"source": ENDLESS, "name": "endless", "target": "cpu", "wait_s": 300}
    return {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "hiera_contract_build", "arguments": arguments},
    }


def send(pipe: IO[bytes], message: Message) -> None:
    pipe.write(json.dumps(message).encode() + b"\n")
    pipe.flush()


def stat_of(pid: int) -> tuple[str, int, str] | None:
    """State, parent and start time of a process; None when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], int(fields[1]), fields[19]


def descendants(root: int) -> dict[int, str]:
    """Process → start time, of all that lives below `root`."""
    stats = {int(p.name): stat_of(int(p.name)) for p in Path("/proc").iterdir() if p.name.isdigit()}
    found: dict[int, str] = {}
    for _ in stats:
        more = {pid: s[2] for pid, s in stats.items() if s and s[1] in (root, *found) and pid not in found}
        if not more:
            break
        found |= more
    return found


def alive(processes: dict[int, str]) -> list[int]:
    """Those that still run; a number that was given to another process, or a zombie, does not count."""
    stats = {pid: stat_of(pid) for pid in processes}
    return [pid for pid, s in stats.items() if s and s[2] == processes[pid] and s[0] != "Z"]


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    folders = {"HIERA_DATA_DIR": str(tmp_path / "data"), "HIERA_CACHE_DIR": str(with_host_rates(tmp_path / "cache"))}
    return {**os.environ, **folders}


@contextmanager
def serving(environment: dict[str, str]) -> Generator[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-m", "hiera_mcp", "serve"]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    assert process.stdin
    assert process.stdout
    try:
        for message in initialize():
            send(process.stdin, message)
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def busy(process: subprocess.Popen[bytes]) -> dict[int, str]:
    """Give the server work; returns the processes below it once the work has one of its own."""
    assert process.stdin
    send(process.stdin, build_endlessly())
    wait_until(lambda: len(descendants(process.pid)) >= 2, "the work never started")
    return descendants(process.pid)


def end_of_input(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin
    process.stdin.close()


def by(number: signal.Signals) -> Callable[[subprocess.Popen[bytes]], None]:
    return lambda process: process.send_signal(number)


def as_claude_code_does(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    for _ in range(20):
        time.sleep(0.01)
        process.send_signal(signal.SIGTERM)


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(end_of_input, id="end of input"),
        pytest.param(by(signal.SIGINT), id="SIGINT"),
        pytest.param(as_claude_code_does, id="SIGINT, then SIGTERM"),
        pytest.param(by(signal.SIGTERM), id="SIGTERM"),
        pytest.param(by(signal.SIGHUP), id="SIGHUP"),
    ],
)
def test_a_busy_server_ends_cleanly_and_leaves_no_process(
    environment: dict[str, str], end: Callable[[subprocess.Popen[bytes]], None]
) -> None:
    with serving(environment) as process:
        below = busy(process)
        end(process)
        assert process.wait(PATIENCE_S) == 0
        wait_until(lambda: not alive(below), f"left behind: {alive(below)}")


def test_the_work_of_a_server_that_was_stopped_is_marked_interrupted(environment: dict[str, str]) -> None:
    with serving(environment) as process:
        busy(process)
        process.terminate()
        process.wait(PATIENCE_S)
    database = Path(environment["HIERA_DATA_DIR"]) / "hiera.db"
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT kind, state FROM jobs").fetchall() == [("contract_build", "interrupted")]


def test_a_killed_server_leaves_no_process(environment: dict[str, str]) -> None:
    """SIGKILL gives the server no chance; the launcher sees the end of its channel."""
    with serving(environment) as process:
        below = busy(process)
        process.kill()
        process.wait()
        wait_until(lambda: not alive(below), f"left behind: {alive(below)}")


def test_a_server_whose_parent_is_killed_ends_although_its_input_stays_open(environment: dict[str, str]) -> None:
    code = (
        "import subprocess, sys; p = subprocess.Popen([sys.executable, '-m', 'hiera_mcp', 'serve'], stdin=0); "
        "print(p.pid, file=sys.stderr, flush=True); p.wait()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert parent.stdin
    assert parent.stdout
    assert parent.stderr
    server = int(parent.stderr.readline())
    for message in initialize():
        send(parent.stdin, message)
    parent.stdout.readline()
    send(parent.stdin, build_endlessly())
    wait_until(lambda: len(descendants(server)) >= 2, "the work never started")
    processes = descendants(parent.pid)
    assert server in processes
    parent.kill()
    parent.wait()
    wait_until(lambda: not alive(processes), f"left behind: {alive(processes)}")
    for pipe in (parent.stdin, parent.stdout, parent.stderr):
        pipe.close()


def test_only_the_protocol_is_written_to_standard_output(environment: dict[str, str]) -> None:
    with serving(environment) as process:
        assert process.stdin
        assert process.stdout
        send(process.stdin, {"jsonrpc": "2.0", "id": 3, "method": "tools/list"})
        answer = json.loads(process.stdout.readline())
        process.stdin.close()
        rest = process.stdout.read()
    assert answer["id"] == 3
    assert rest == b""


def test_a_database_that_cannot_be_opened_is_said_in_one_line(environment: dict[str, str]) -> None:
    environment["HIERA_DATA_DIR"] = "/dev/null"
    argv = [sys.executable, "-m", "hiera_mcp", "serve"]
    done = subprocess.run(argv, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert "Cannot open the database" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_server_imports_neither_torch_nor_cupy() -> None:
    code = (
        "import sys, hiera_mcp.serving, hiera_mcp.tools, hiera_mcp.resources, hiera_mcp.cli.serve; "
        "print([m for m in sys.modules if m.partition('.')[0] in ('torch', 'cupy')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
