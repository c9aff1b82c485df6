"""rlimits of a box: what the kernel itself enforces (setrlimit(2))."""

import os

from hiera_mcp.sandbox.isolation.box import BoxLimits

OPEN_FILES = 4096
_THREADS_PER_CPU = 16


def process_backstop(limits: BoxLimits) -> int:
    """RLIMIT_NPROC. It counts threads, of which an honest OpenMP or torch process has many, so it is only a backstop to
    the watcher, which counts processes and names the limit that was hit."""
    return limits.processes * 2 + _THREADS_PER_CPU * (os.cpu_count() or 1) + 64


def resource_limits(limits: BoxLimits) -> dict[str, int]:
    """Name (as in prlimit(1)) → value, for all limits that may be set before the box exists."""
    chosen = {"core": 0, "fsize": limits.file_bytes, "nofile": OPEN_FILES}
    if limits.memory_kind == "address_space":
        chosen["as"] = limits.memory_bytes
    elif limits.memory_kind == "data":
        chosen["data"] = limits.memory_bytes
    return chosen


def start_limits(limits: BoxLimits) -> tuple[str, ...]:
    """prlimit(1) in front of a command."""
    return ("prlimit", *(f"--{name}={value}" for name, value in resource_limits(limits).items()), "--")
