"""What a compiler is to the rest: a tool that is found, a command that is built, a log that is read."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hiera_mcp.model.evaluation import KernelResources
from hiera_mcp.model.space import Target
from hiera_mcp.sandbox.libraries import Library

CONTRACT_HEADER = "contract.h"
BINDING = "cpp_source.cpp"
"""The fixed file that offers the runner the flat form of the binding (docs/architecture.md)."""

Failure = Literal["compile_error", "timeout", "resource_limit"]
"""Why a build did not come about."""


@dataclass(frozen=True)
class Tool:
    """A compiler that was found on this host."""

    name: str
    program: Path
    """The real program, not a wrapper script or a link to it."""
    version: str
    machine: str = ""
    """What its output depends on besides its input: the processor, under -march=native."""
    toolkit: Path | None = None
    """Root of the CUDA toolkit."""


@dataclass(frozen=True)
class Job:
    """One shared object to build: one case of one candidate."""

    target: Target
    case: int
    source: str
    """The candidate's source file."""
    binding: bool = True
    """Link the fixed binding, which calls hiera_run; not for functions that a ModelNew calls."""
    libraries: tuple[Library, ...] = ()
    """What the space allows; linked only where used."""

    @property
    def output(self) -> str:
        return f"case{self.case}.so"

    @property
    def dependencies(self) -> str:
        return f"case{self.case}.d"

    @property
    def units(self) -> tuple[str, ...]:
        """Translation units. The candidate's is last: each one overwrites the dependency file."""
        return (BINDING, self.source) if self.binding else (self.source,)

    @property
    def preludes(self) -> dict[str, str]:
        """Headers to include first, name → text."""
        return {f"hiera_{library.name}.h": library.prelude for library in self.libraries if library.prelude}


@dataclass(frozen=True)
class Compiler:
    """One compiler: pure functions, but for `find`, which looks at the host."""

    name: str
    serves: Callable[[Target], bool]
    find: Callable[[Target], Tool]
    """Raises ToolchainError: it is missing, or cannot build for the target; says what to install."""
    command: Callable[[Tool, Job], tuple[str, ...]]
    """The command line, to be run in the work folder."""
    kernels: Callable[[str], tuple[KernelResources, ...]]
    """What its log says of each kernel."""


def library_flags(job: Job) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Flags before the sources (headers) and after them (shared objects), as g++ takes them."""
    folders = dict.fromkeys(str(library.include) for library in job.libraries if library.include is not None)
    headers = [flag for folder in folders for flag in ("-isystem", folder)]
    headers += [flag for name in job.preludes for flag in ("-include", name)]
    links = dict.fromkeys(flag for library in job.libraries for flag in library.link_flags)
    return tuple(headers), tuple(links)


def version_line(program: Path, pattern: str) -> str:
    """The line of `program --version` that holds `pattern`, or an empty string when it does not run."""
    try:
        done = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next((line.strip() for line in done.stdout.splitlines() if pattern in line), "")
