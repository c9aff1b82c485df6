"""Where perf_event_open is refused, threads are stopped to see where they are; what they do is not changed by it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WITHOUT_CLOCK = """
import ctypes, json, os, struct, sys, threading, time
from pathlib import Path
from hiera_mcp.sandbox.child import seccomp
from hiera_mcp.sandbox.child.host_samples import sampled
from hiera_mcp.sandbox.child.host_symbols import placed
number = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
rows = ((0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000))
seccomp.install(b"".join(struct.pack("=HBBI", *row) for row in rows))  # the one call alone: EPERM
"""
LOOP = """
loop = ctypes.CDLL(sys.argv[1]).own_loop
loop.argtypes = [ctypes.c_long]
def work():
    until = time.perf_counter() + 1
    while time.perf_counter() < until:
        loop(100_000)
with sampled(1.0) as hits:
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
found = placed(hits.addresses, Path(sys.argv[1]))
print(json.dumps({"refused": hits.refused, "clock": hits.clock, "all": hits.addresses.total(), **found}))
"""
SIGNALS = """
import signal
seen = []
signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
def work():
    until = time.thread_time() + 0.01
    while time.thread_time() < until: pass
with sampled(1.0) as hits:
    for _ in range(30):
        thread = threading.Thread(target=work)
        thread.start()
        os.kill(os.getpid(), signal.SIGUSR1)
        thread.join()
print(json.dumps({"refused": hits.refused, "seen": len(seen), "threads": threading.active_count()}))
"""
SOURCE = """
extern "C" double own_loop(long n) {
    double s = 0;
    for (long i = 0; i < n; ++i) s = s / 1.5 + i;
    return s;
}
"""


def run(script: str, *arguments: str) -> dict[str, Any]:
    argv = [sys.executable, "-c", WITHOUT_CLOCK + script, *arguments]
    said = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout)
    if said["refused"]:
        assert "nor can its threads be stopped" in said["refused"]
        pytest.skip(said["refused"])
    return said


def test_threads_are_stopped_where_the_clock_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text(SOURCE)
    subprocess.run(["g++", "-O2", "-shared", "-fPIC", "a.cpp", "-o", "own.so"], cwd=tmp_path, check=True)
    said = run(LOOP, str(tmp_path / "own.so"))
    assert "refused" in said["clock"]
    assert sum(n for _, n in said["own"]) > 0.5 * said["all"] > 0


def test_signals_and_ends_of_threads_are_passed_on() -> None:
    said = run(SIGNALS)
    assert (said["seen"] > 0, said["threads"]) == (True, 1)
