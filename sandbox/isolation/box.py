"""What a sandboxed process is: a frozen description, independent of the mechanism that enforces it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from hiera_mcp.sandbox.devices import GpuDevice

BOX = "/box"
"""Where the work folder is seen inside."""


@dataclass(frozen=True)
class Bind:
    """A host path that is visible inside, read-only."""

    host: Path
    inside: str


@dataclass(frozen=True)
class BoxLimits:
    """Limits that the kernel enforces on a box, or its watcher where the kernel cannot."""

    memory_bytes: int
    memory_kind: Literal["address_space", "data", "none"] = "data"
    """address_space suits compilers; CUDA needs a huge address space, so there `data`."""
    file_bytes: int = 256 << 20
    """Greatest size of one file."""
    disk_bytes: int = 512 << 20
    """Greatest size of the work folder together."""
    processes: int = 128
    output_bytes: int = 8 << 20
    """More output than this ends the box; of less, the first 64 KiB and the last 4 KiB are kept."""


@dataclass(frozen=True)
class BoxSpec:
    """One process to start inside a box."""

    argv: tuple[str, ...]
    work: Path
    """Host folder seen as /box; the only place that can be written, besides a private /tmp."""
    limits: BoxLimits
    writable: bool = True
    """False: /box is read-only as well."""
    binds: tuple[Bind, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """The whole environment, besides PATH, HOME, TMPDIR, LC_ALL, USER and HIERA_BOX, which the box sets unless given
    here. HIERA_BOX names the work folder as the process sees it: /box, or its host path where nothing can be remapped."""
    fds: tuple[int, ...] = ()
    """Descriptors that are inherited under the same numbers."""
    gpu: GpuDevice | None = None
    """The one GPU whose device nodes are visible. CUDA numbers what it sees, so that inside it is device 0."""
    profiler: bool = False
    """A tool that traces its own children (ncu, compute-sanitizer) runs inside: allow ptrace, performance counters and
    sockets inside the box's own, empty network."""


@dataclass(frozen=True)
class Command:
    """What to hand to the operating system: a command line and the descriptors it needs."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    fds: tuple[int, ...]
    """All that are inherited, `owned_fds` included."""
    status_fd: int
    """Read end of a pipe: JSON documents with `child-pid` (the box's first process) and, if and only if the program was
    started and ended by itself, `exit-code` (128 + n for signal n). The reader closes it."""
    owned_fds: tuple[int, ...] = ()
    """Descriptors made for this command (a seccomp program, say); to be closed once it has started."""
    pid_namespace: bool = False
    """Whether the end of `child-pid` is the end of every process of the box."""
    own_processes: int = 0
    """Processes of the backend below the first one, which do not count against the box's limit."""


@dataclass(frozen=True)
class Outcome:
    """How a boxed process ended."""

    ended: Literal["exit", "signal", "timeout", "output_limit", "memory_limit", "disk_limit", "process_limit", "killed"]
    """killed: by our own `kill()`."""
    code: int
    """Exit status, or the signal's number."""
    output: str
    """stdout and stderr together, cut in the middle with a line that counts what was left out."""
    output_bytes: int
    seconds: float


class Isolation(Protocol):
    """A backend. `command` is a pure builder (but for descriptors it opens); `process.py` starts what it builds."""

    name: str

    def prepare(self, spec: BoxSpec) -> None:
        """Hand the work folder to the user that the box will run as. `process.start` calls it."""
        ...

    def command(self, spec: BoxSpec) -> Command: ...
