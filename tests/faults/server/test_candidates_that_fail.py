"""Candidates that fail in every way, through the tools of a real server: each ends in its status, with a reason that names
what was seen, and leaves everything as it was."""

import contextlib
import re
import socket
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(300)

GOOD = """
#include "contract.h"
%(before)s
extern "C" int hiera_run(const hiera_inputs *in, const hiera_params *, const hiera_outputs *out, void *) {
    %(inside)s
    for (int i = 0; i < HIERA_NUMEL_x; ++i) out->out[i] = in->x[i] < 0 ? 0 : in->x[i];
    return 0;
}
"""
DEEP = """
template <int N, class T> struct P {};
template <int N, class T> struct D {
    using t = typename D<N - 1, P<N, P<N, T>>>::t;
    using u = typename D<N - 1, P<0, T>>::t;
};
template <class T> struct D<0, T> { using t = T; };
D<26, int>::t q;
"""
ENDLESS_DEPTH = "template <int N> struct Deeper { static const int v = Deeper<N + 1>::v; };\nint v = Deeper<0>::v;"
FLOOD_OF_WARNINGS = '#warning "flood"\n#if __INCLUDE_LEVEL__ < 40\n' + '#include "cpu_source.cpp"\n' * 2 + "#endif\n"
MB = 1 << 20


@dataclass(frozen=True)
class Fault:
    """A candidate that goes wrong, and what must be said of it: patterns of the status and of a part of the reason."""

    status: str
    seen: str
    before: str = ""
    inside: str = ""
    source: str = ""
    limits: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def text(self) -> str:
        return self.source or GOOD % {"before": self.before, "inside": self.inside}


BUILDING = {
    "a missing operand": Fault("compile_error", "cpu_source.cpp:5", inside="int x = ;"),
    "a compiler that does not end": Fault("timeout", "2 s", before=DEEP, limits={"compile_s": 2}),
    "templates without end": Fault("compile_error", "template instantiation depth", before=ENDLESS_DEPTH),
    "a flood of warnings": Fault("resource_limit", "1024 KiB", source=FLOOD_OF_WARNINGS),
    "a compiler that eats memory": Fault(
        "resource_limit", "memory", before='#include "/dev/zero"', limits={"memory_bytes": 512 * MB}
    ),
    "a missing function": Fault("compile_error", "hiera_run", source='#include "contract.h"\n'),
}
ENDING = {
    "an endless loop": Fault("timeout", "2 s", inside="for (volatile int on = 1; on;) {}", limits={"total_s": 2}),
    "a call that sleeps": Fault(
        "timeout", "within 0.5 s", before="#include <unistd.h>", inside="sleep(60);", limits={"call_s": 0.5}
    ),
    "a segmentation fault": Fault("crash", "SIGSEGV", inside="*(volatile int *)8 = 1;"),
    "a stack overflow": Fault(
        "crash",
        "SIGSEGV",
        before="int deep(volatile char *p) { volatile char b[4096]; b[0] = p[0]; return deep(b) + b[0]; }",
        inside="volatile char b[1]; return deep(b);",
    ),
    "an end with status 0": Fault("crash", "status 0", before="#include <cstdlib>", inside="exit(0);"),
    "an end before the start": Fault(
        "crash", "status 0", before="#include <unistd.h>\nstruct Early { Early() { _exit(0); } } early;"
    ),
}
WRONG = {
    "an error code": Fault("crash", "7", inside="return 7;"),
    "not a number": Fault("wrong_output", "out", inside="out->out[3] = 0.f / 0.f; return 0;"),
    "only zeros": Fault("wrong_output", "out", inside="for (int i = 0; i < 4096; ++i) out->out[i] = 0; return 0;"),
    "the last element left out": Fault(
        "wrong_output",
        "never written",
        inside="for (int i = 0; i < 4095; ++i) out->out[i] = in->x[i] < 0 ? 0 : in->x[i]; return 0;",
    ),
    "a write behind the end": Fault("wrong_output", "past the end of out", inside="out->out[HIERA_NUMEL_x] = 1;"),
    "a write to an input": Fault("crash", "SIGSEGV", inside="const_cast<float *>(in->x)[0] = 1;"),
}
TAKING = {
    "too much memory": Fault(
        "resource_limit|crash",
        "memory|bad_alloc",
        inside="for (;;) { volatile char *p = new char[64 << 20]; for (long i = 0; i < 64 << 20; i += 4096) p[i] = 1; }",
        limits={"memory_bytes": 1 << 30, "call_s": 20},
    ),
    "a flood of output": Fault(
        "resource_limit", "print", before="#include <cstdio>", inside='for (;;) puts("a line that never ends");'
    ),
}


@pytest.mark.parametrize("faults", [BUILDING, ENDING, WRONG, TAKING], ids=["building", "ending", "wrong", "taking"])
def test_faults_end_in_their_statuses_and_leave_nothing(aftermath: Any, faults: dict[str, Fault]) -> None:
    aftermath.executor.changed.update({fault.text: fault.limits for fault in faults.values()})
    rows = aftermath.evaluate({name: fault.text for name, fault in faults.items()})
    for name, fault in faults.items():
        row = rows[name]
        assert re.fullmatch(fault.status, row["status"]), (name, row["reason"])
        assert re.search(fault.seen, row["reason"]), (name, row["reason"])
        assert row["time_s"] is None
        assert str(aftermath.settings.cache_dir.parent) not in row["reason"] + aftermath.log(row)


READING = ['#include "{}"', 'asm(".incbin \\"{}\\"");', 'asm(".include \\"{}\\"");']


def test_no_file_of_the_host_is_read_through_the_compiler(aftermath: Any) -> None:
    answers = aftermath.settings.data_dir / "answers"
    answers.write_text("the expected outputs\n")
    lines = [how.format(path) for how in READING for path in (answers, "/etc/passwd")]
    rows = aftermath.evaluate({f"c{n}": GOOD % {"before": line, "inside": ""} for n, line in enumerate(lines)})
    for row in rows.values():
        assert row["status"] == "compile_error" and re.search(r"No such file|not found", row["reason"]), row["reason"]
        assert not re.search("expected outputs|root:", row["reason"] + aftermath.log(row))


MODEL = """
import torch
{act}

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
"""
DAEMON = """
import os, signal
if os.fork() == 0:
    os.setsid()
    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    os.fork()
    while True:
        signal.pause()
"""
LEAVES = """
import os, socket
for folder in ("/", "/etc", "/usr", "/opt", "/opt/hiera", "/tmp", "/var/tmp", "/dev/shm", "/run", "/box", "/proc", "/dev", ".."):
    for make in (lambda p: open(p, "w").close(), lambda p: os.mkfifo(p + ".pipe"), lambda p: os.symlink("/etc", p + ".link")):
        try: make(f"{folder}/TOKEN")
        except OSError: pass
"""
FILLS = """
for folder in ("/tmp", "/dev/shm", "/box", "."):
    for n in range(1000):
        try:
            with open(f"{folder}/TOKEN{n}", "wb") as file: file.write(bytes(1 << 20))
        except OSError: break
"""
FORKS = """
import os, time
while True:
    try: os.fork()
    except OSError: pass
"""
CONNECTS = """
import socket
inet, unix, stream, datagram = socket.AF_INET, socket.AF_UNIX, socket.SOCK_STREAM, socket.SOCK_DGRAM
hosts = ("127.0.0.1", "169.254.169.254")
reached = []
for family, kind, address in [
    *((inet, kind, (host, PORT)) for host in hosts for kind in (stream, datagram)),
    *((unix, stream, address) for address in ("PATH", chr(0) + "TOKEN")),
]:
    try:
        with socket.socket(family, kind) as end:
            end.settimeout(2)
            end.connect(address)
            end.send(b"x")
            reached.append(address)
    except OSError: pass
assert not reached, reached
"""


@contextlib.contextmanager
def listeners(path: Path, token: str) -> Generator[int]:
    """Somebody listens at a path, at an abstract name, and at the port that is returned."""
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        for address in (str(path), "\0" + token):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
        path.chmod(0o777)
        yield tcp.getsockname()[1]
    path.unlink()


SEARCHES = """
import glob
found = []
for path in PATHS:
    try: found.append(open(path, "rb").read(1) and path)
    except IsADirectoryError: found.append(path)
    except OSError: pass
for name in glob.glob("/proc/[0-9]*/environ"):
    try: found += [name] if SECRET in open(name, "rb").read() else []
    except OSError: pass
assert not found, found
"""


def searching(site: Any) -> str:
    """The launcher inherits the server's environment, keys of APIs included; no box does."""
    secret = max(Path(f"/proc/{site.launcher()}/environ").read_bytes().split(b"\0"), key=len)
    settings = site.settings
    paths = [settings.database, settings.data_dir, settings.cache_dir, site.work_root(), __file__]
    named = [*map(str, paths), "/etc/shadow", "/etc/passwd"]
    return SEARCHES.replace("PATHS", repr(named)).replace("SECRET", repr(secret))


def test_right_candidates_pass_and_what_they_try_beside_comes_to_nothing(aftermath: Any) -> None:
    path = aftermath.settings.data_dir.parent / "socket"
    with listeners(path, aftermath.token) as port:
        acts = {
            "leaves daemons that ignore every signal": DAEMON,
            "leaves files, pipes and links everywhere": LEAVES,
            "fills the disk": FILLS,
            "connects to sockets of the host": CONNECTS.replace("PORT", str(port)).replace("PATH", str(path)),
            "looks for files and secrets of the server": searching(aftermath),
            "forks without end": FORKS,
        }
        texts = {name: MODEL.format(act=act.replace("TOKEN", aftermath.token)) for name, act in acts.items()}
        aftermath.executor.changed[texts["fills the disk"]] = {"disk_bytes": 16 * MB}
        aftermath.executor.changed[texts["forks without end"]] = {"processes": 40}
        rows = aftermath.evaluate(texts, python=True)
    bomb = rows.pop("forks without end")
    assert bomb["status"] == "resource_limit" and "processes" in bomb["reason"], bomb["reason"]
    assert {name: row["reason"] for name, row in rows.items() if row["status"] != "passed"} == {}
