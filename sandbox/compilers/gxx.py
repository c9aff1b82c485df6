"""g++ for the cpu target: a plain shared object, optimised for this host's processor, with OpenMP."""

import shutil
from functools import lru_cache
from pathlib import Path

from hiera_mcp.errors import ToolchainError
from hiera_mcp.model.base import digest
from hiera_mcp.model.evaluation import KernelResources
from hiera_mcp.model.space import Target, is_cpu
from hiera_mcp.sandbox.compilers.base import Compiler, Job, Tool, library_flags, version_line

FLAGS = ("-std=c++17", "-O3", "-march=native", "-fopenmp", "-fPIC", "-shared", "-g1", "-fmax-errors=30")
"""-g1 is for the lines of a profile. g++ makes the same machine code with it as without."""
LINK_FLAGS = ("-Wl,--no-undefined", "-Wl,-Bsymbolic", "-Wl,--hash-style=both", "-Wl,--as-needed")
"""No surprise at dlopen; own names bind to own code; a symbol count that elf.py can trust; DT_NEEDED only if used."""


def find(target: Target) -> Tool:
    """The g++ of this host.

    Raises:
        ToolchainError: there is none.
    """
    del target  # one g++ serves cpu
    return host_compiler()


@lru_cache(maxsize=1)
def host_compiler() -> Tool:
    program = _program()
    if program is None:
        raise ToolchainError(
            "g++ was not found.", todo="Install it (Debian, Ubuntu: `apt install g++`) and start the server again."
        )
    return Tool(
        name="g++",
        program=program,
        version=version_line(program, "") or "g++ of unknown version",
        machine=_processor(),
    )


def command(tool: Tool, job: Job) -> tuple[str, ...]:
    """The command line that builds one case, to be run in the work folder."""
    headers, links = library_flags(job)
    return (
        str(tool.program),
        *FLAGS,
        f"-DHIERA_CASE={job.case}",
        "-I.",
        *headers,
        *("-MD", "-MF", job.dependencies, "-MT", job.output),
        *job.units,
        *("-o", job.output),
        *LINK_FLAGS,
        *links,
    )


def _program() -> Path | None:
    """The real g++: what lies on the PATH may be a link to a wrapper such as ccache, which needs its link's name."""
    found = [Path(path).resolve() for path in (shutil.which("g++"), "/usr/bin/g++") if path and Path(path).exists()]
    return next((path for path in found if "g++" in path.name), None)


def _no_kernels(log: str) -> tuple[KernelResources, ...]:
    del log  # g++ tells nothing of registers
    return ()


def _processor() -> str:
    """Identifies what -march=native means here: model and instruction-set flags."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return "unknown"
    first = text.partition("\n\n")[0].splitlines()
    return digest([line for line in first if line.startswith(("model name", "flags", "CPU", "Features"))])


GXX = Compiler(name="g++", serves=is_cpu, find=find, command=command, kernels=_no_kernels)
