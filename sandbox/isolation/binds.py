"""What must be visible inside besides /usr: the interpreter, the child programs, the compilers, the GPU driver.

All paths are found by looking at this host. Anything below /usr is there already.
"""

import os
import shutil
import site
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import hiera_mcp
from hiera_mcp.sandbox.isolation.box import Bind

CHILD_ROOT = "/opt/hiera"
"""The folder inside a box from which `hiera_mcp.sandbox.child` is imported."""


def child_binds() -> tuple[Bind, ...]:
    """The child programs, and only they, below /opt/hiera."""
    package = Path(hiera_mcp.__file__).resolve().parent
    parts = ("__init__.py", "sandbox/__init__.py", "sandbox/child")
    return tuple(Bind((package / part).resolve(), f"{CHILD_ROOT}/hiera_mcp/{part}") for part in parts)


def child_env() -> dict[str, str]:
    """Environment for a child program."""
    user_site = [path for path in _user_site() if Path(path).is_dir()]
    return {"PYTHONPATH": ":".join([CHILD_ROOT, *user_site]), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}


@cache
def python_binds() -> tuple[Bind, ...]:
    """The running interpreter under its own path: prefix, base prefix, site-packages and every link on the way to it."""
    folders = [sys.prefix, sys.base_prefix, sys.exec_prefix, *site.getsitepackages(), *_user_site()]
    return _as_binds([*folders, *link_chain(Path(sys.executable))])


@cache
def toolkit_binds() -> tuple[Bind, ...]:
    """Compilers outside /usr: the CUDA toolkit behind links and wrapper scripts, and a g++ of another prefix."""
    roots: list[str | Path] = []
    for name in ("nvcc", "g++"):
        found = find_tool(name)
        if found is not None:
            roots += [*link_chain(found), *_prefix(found.resolve())]
    nvcc = find_tool("nvcc")
    roots += [] if nvcc is None else [folder for folder in [_cuda_root(nvcc)] if folder]
    return _as_binds(roots)


@cache
def driver_folders() -> tuple[str, ...]:
    """Folders outside /usr in which the host's loader finds the GPU driver (ld.so.cache, LD_LIBRARY_PATH)."""
    cached = [Path(line.rpartition("=> ")[2]) for line in _loader_cache() if _is_driver(line.strip())]
    listed = [Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder.startswith("/")]
    folders = {path.parent for path in cached} | {path for path in listed if any(path.glob("libcuda.so*"))}
    real = {folder.resolve() for folder in folders} | {
        p.resolve().parent for f in folders for p in f.glob("libcuda.so*")
    }
    return tuple(sorted(str(folder) for folder in folders | real if not _below_usr(folder)))


def find_tool(name: str) -> Path | None:
    """A compiler by its name: on PATH, or for nvcc also where CUDA_HOME, CUDA_PATH or /usr/local/cuda point."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"] if name == "nvcc" else []
    candidates = [shutil.which(name), *(f"{home}/bin/{name}" for home in homes if home)]
    return next((Path(path) for path in candidates if path and os.access(path, os.X_OK)), None)


def link_chain(path: Path) -> Iterator[Path]:
    """`path`, what it links to, what that links to, and so on."""
    for _ in range(40):
        yield path
        if not path.is_symlink():
            return
        path = Path(os.path.normpath(path.parent / path.readlink()))


def _prefix(tool: Path) -> list[Path]:
    """The installation that a compiler belongs to. A script in ~/bin has none: its home folder must not be bound."""
    prefix = tool.parent.parent
    return [prefix] if (prefix / "nvvm").is_dir() or (prefix / "lib" / "gcc").is_dir() else []


def _cuda_root(nvcc: Path) -> str | None:
    """Where the toolkit is, by nvcc's own word: the program on PATH may be a script that calls the real one."""
    asked = [str(nvcc), "--dryrun", "-x", "cu", "-c", "/dev/null", "-o", "/dev/null"]
    shown = subprocess.run(asked, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, timeout=30)
    lines = (line.removeprefix("#$ TOP=") for line in shown.stderr.splitlines() if line.startswith("#$ TOP="))
    return next((os.path.realpath(line) for line in lines), None)


def _as_binds(paths: Iterable[str | Path]) -> tuple[Bind, ...]:
    """Binds under the same path, without what is missing, below /usr, or inside another one."""
    inside = sorted({Path(os.path.normpath(p)) for p in paths} | {Path(p).resolve() for p in paths})
    wanted = [path for path in inside if path.exists() and not _below_usr(path)]
    outermost = [path for path in wanted if not any(other in path.parents for other in wanted)]
    return tuple(Bind(path.resolve(), str(path)) for path in outermost)


def _below_usr(path: Path) -> bool:
    """Whether every box shows this path already: it, and what it links to, lie in /usr or its top-level links."""
    shown = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin")
    return path.resolve().is_relative_to("/usr") and any(path.is_relative_to(top) for top in shown)


def _user_site() -> list[str]:
    return [site.getusersitepackages()] if site.ENABLE_USER_SITE else []


def _loader_cache() -> list[str]:
    ldconfig = shutil.which("ldconfig", path="/sbin:/usr/sbin:/bin:/usr/bin")
    if ldconfig is None:
        return []
    shown = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    return shown.stdout.splitlines()


def _is_driver(name: str) -> bool:
    return name.startswith(("libcuda.so", "libnvidia-", "libcudadebugger", "libnvcuvid"))
