"""Choose a backend by trying what it must deny, never by reading version numbers."""

import asyncio
import contextlib
import json
import os
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hiera_mcp.errors import NoIsolationError, SandboxError
from hiera_mcp.model.work import IsolationReport, Probe
from hiera_mcp.sandbox.devices import GpuDevice
from hiera_mcp.sandbox.isolation import binds
from hiera_mcp.sandbox.isolation.box import BoxLimits, BoxSpec, Isolation
from hiera_mcp.sandbox.isolation.bubblewrap import Bubblewrap
from hiera_mcp.sandbox.isolation.folders import discard
from hiera_mcp.sandbox.isolation.identity import box_user, hidden_paths
from hiera_mcp.sandbox.isolation.landlock import Landlock
from hiera_mcp.sandbox.isolation.process import run
from hiera_mcp.sandbox.isolation.unsafe import Unsafe

BACKENDS: tuple[Isolation, ...] = (Bubblewrap(), Landlock())
"""In the order of preference."""

MUST_WORK = ("write_work", "start_process", "socketpair")
"""All other attempts must be denied, but for `gpu` in a box that is given one."""

_SHARED_MEMORY = "/dev/shm"
_LAUNCHES = 20
_PROBE_S = 30.0
_LIMITS = BoxLimits(memory_bytes=1 << 30)
_ADVICE = (
    "Install bubblewrap (`apt-get install bubblewrap`, `dnf install bubblewrap`) and allow user namespaces "
    "(`sysctl kernel.unprivileged_userns_clone=1`; on Ubuntu 24.04 also `kernel.apparmor_restrict_unprivileged_userns=0`; "
    "in Docker a seccomp profile that allows unshare and mount), or use a kernel with Landlock ABI 6 (Linux 6.12). "
    "`hiera-mcp doctor` shows each probe. On a host that holds nothing of value, HIERA_UNSAFE_NO_SANDBOX=1 runs without "
    "isolation."
)


async def choose(unsafe: bool = False) -> Isolation:
    """The first backend that denies all that it must; with `unsafe`, none at all.

    Raises:
        NoIsolationError: there is none; says why for each backend, and what to install or allow.
    """
    if unsafe:
        return Unsafe()
    reasons: list[str] = []
    for backend in BACKENDS:
        probes, reason = await _probe(backend)
        if not reason:
            return backend
        reasons.append(f"{backend.name}: {reason}" if probes or reason else backend.name)
    raise NoIsolationError("No way to isolate untrusted code works on this host. " + " ".join(reasons), todo=_ADVICE)


async def self_check(backend: Isolation, gpu: GpuDevice | None = None) -> IsolationReport:
    """All probes of one backend, and what a launch costs; with `gpu`, of its boxes that see that GPU."""
    probes, reason = await _probe(backend, gpu)
    launch_ms = await _launch_ms(backend) if probes else None
    name = backend.name if gpu is None else f"{backend.name}, GPU {gpu.index}"
    return IsolationReport(backend=name, usable=not reason, reason=reason, probes=probes, launch_ms=launch_ms)


async def report_all(gpus: Sequence[GpuDevice] = ()) -> tuple[IsolationReport, ...]:
    """The self-check of every backend in the order of preference, and of the first one's boxes with each of `gpus`."""
    plain = [await self_check(backend) for backend in BACKENDS]
    return (*plain, *[await self_check(BACKENDS[0], gpu) for gpu in gpus])


def judge(observed: dict[str, str], gpu: bool = False) -> tuple[Probe, ...]:
    """What a box let happen, held against what it must."""
    must_work = (*MUST_WORK, *(("gpu",) if gpu else ()))
    return tuple(_probe_of(name, seen, name in must_work) for name, seen in observed.items())


def _probe_of(name: str, seen: str, must_work: bool) -> Probe:
    wanted = "allowed" if must_work else "denied"
    return Probe(name=name, expected=wanted, observed=seen, ok=(seen == "allowed") == must_work)


async def _probe(backend: Isolation, gpu: GpuDevice | None = None) -> tuple[tuple[Probe, ...], str]:
    """Probes, and why the backend cannot be used; empty when it can."""
    try:
        with _folder() as work, _host(box_user()) as host:
            spec = _spec(work, host, gpu)
            hidden = hidden_paths(spec, box_user())
            outcome = await run(backend, spec, _PROBE_S)
    except SandboxError as e:
        return (), e.what
    except (OSError, subprocess.SubprocessError) as e:
        return (), f"it cannot be tried: {e}."
    try:
        probes = judge(json.loads(outcome.output), gpu is not None)
    except ValueError:
        return (), f"the probe program did not run ({outcome.ended} {outcome.code}): {outcome.output[-300:].strip()}"
    failed = [probe for probe in probes if not probe.ok]
    return probes, _complaint(failed, hidden) if failed else ""


def _complaint(failed: Sequence[Probe], hidden: Sequence[Path]) -> str:
    """Which probes failed; and where a box had to stay root, because of what."""
    named = ", ".join(f"{probe.name} {probe.observed}" for probe in failed)
    root = any(probe.name == "be_root" for probe in failed) and hidden
    why = f" No other user than root can reach {', '.join(map(str, hidden))}." if root else ""
    return f"it fails these probes: {named}.{why}"


def _spec(work: Path, host: "_Host", gpu: GpuDevice | None) -> BoxSpec:
    program = (sys.executable, "-P", "-S", "-m", "hiera_mcp.sandbox.child.denials")
    visible = (*binds.python_binds(), *binds.child_binds())
    return BoxSpec((*program, host.config()), work, _LIMITS, binds=visible, env=binds.child_env(), gpu=gpu)


async def _launch_ms(backend: Isolation) -> float | None:
    """Median time from start to reaped, of a program that does nothing; None when it does not start."""
    try:
        with _folder() as work:
            times = [await _timed(backend, BoxSpec(("true",), work, _LIMITS)) for _ in range(_LAUNCHES)]
    except (SandboxError, OSError):
        return None
    return round(statistics.median(times) * 1e3, 2)


async def _timed(backend: Isolation, spec: BoxSpec) -> float:
    begin = time.perf_counter()
    await run(backend, spec, _PROBE_S)
    return time.perf_counter() - begin


@contextlib.contextmanager
def _folder(parent: str | None = None) -> Generator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="hiera-probe-", dir=parent))
    try:
        yield folder
    finally:
        discard(folder)


@dataclass(frozen=True)
class _Host:
    """What a box must not reach. File permissions do not protect it: only the box can."""

    folder: Path
    memory: Path
    port: int
    token: str
    victim: int

    def config(self) -> str:
        start = Path(f"/proc/{self.victim}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
        return json.dumps(
            {
                "secret": str(self.folder / "secret"),
                "outside": str(self.folder),
                "memory": str(self.memory),
                "socket": str(self.folder / "socket"),
                "abstract": self.token,
                "token": self.token,
                "port": self.port,
                "victim": self.victim,
                "victim_start": start,
            }
        )


@contextlib.contextmanager
def _host(user: int) -> Generator[_Host]:
    """Bait: a file, listeners, and a process of the box's own user with a secret in its environment."""
    token = "hiera-" + secrets.token_hex(8)
    with contextlib.ExitStack() as stack:
        folder, memory = stack.enter_context(_folder()), stack.enter_context(_folder(_shared_memory()))
        folder.chmod(0o777)
        memory.chmod(0o777)
        (folder / "secret").write_text(token)
        if user != os.geteuid():
            os.chown(folder / "secret", user, user)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        for address in ("\0" + token, str(folder / "socket")):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
        (folder / "socket").chmod(0o777)
        victim = stack.enter_context(_victim(user, token))
        yield _Host(folder, memory, tcp.getsockname()[1], token, victim)


def _shared_memory() -> str | None:
    """Where POSIX shared memory lies, if everybody may write there as usual."""
    return _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK | os.X_OK) else None


@contextlib.contextmanager
def _victim(user: int, token: str) -> Generator[int]:
    # the secret stands in the environment block, which survives exec: nothing of it is on the command line
    other = user if user != os.geteuid() else None
    process = subprocess.Popen(
        ["/bin/sleep", "60"], env={"HIERA_SECRET": token}, user=other, group=other, stdin=subprocess.DEVNULL, cwd="/"
    )
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """Write every backend's report as JSON lines; `hiera-mcp doctor` shows it better."""
    for report in asyncio.run(report_all()):
        sys.stdout.write(report.model_dump_json() + "\n")


if __name__ == "__main__":
    main()
