"""What the backends without a mount namespace share: real paths in place of the box's, and the jail program's command.

Nothing can be shown under another path there. So /box becomes the work folder, and binds under another path become links
in a private folder; both are replaced in the command line and the environment.
"""

import marshal
import os
import sys
import tempfile
import weakref
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import hiera_mcp
from hiera_mcp.sandbox.isolation.box import BOX, Bind, BoxSpec, Command
from hiera_mcp.sandbox.isolation.folders import discard
from hiera_mcp.sandbox.isolation.identity import box_user, hand_over, hidden_paths
from hiera_mcp.sandbox.isolation.limits import process_backstop, resource_limits

TMP = ".tmp"
"""The private /tmp, inside the work folder."""

READABLE = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/etc/ld.so.cache", "/etc/alternatives", "/sys/devices/system"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/filesystems", "/proc/self"),
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


@dataclass(frozen=True)
class Jail:
    """How much the jail program shall do."""

    user: int
    """The uid to run as."""
    confined: bool
    """Landlock and seccomp."""


@dataclass(frozen=True)
class Placed:
    """A spec whose paths are those of the host."""

    spec: BoxSpec
    readable: tuple[str, ...]


def jail_user(spec: BoxSpec) -> int:
    """The host uid of the box. Root remains where nobody else can reach what the box needs; under Landlock it loses its
    capabilities then, and the probes refuse it all the same."""
    user = box_user()
    return os.geteuid() if hidden_paths(spec, user) else user


def prepare_folder(spec: BoxSpec) -> None:
    """Make the private /tmp and hand the work folder over."""
    if spec.writable:
        (spec.work / TMP).mkdir(exist_ok=True)
    hand_over(spec.work, jail_user(spec))


def place(spec: BoxSpec) -> Placed:
    """Translate the paths of a spec."""
    stage = _stage(spec.binds)
    kept = (spec.work, *(Path(bind.inside) for bind in spec.binds if _in_place(bind)))
    tops = [_top(bind.inside, kept) for bind in spec.binds if not _in_place(bind)]
    moved = {BOX: str(spec.work), **{top: f"{stage}{top}" for top in tops}}
    tmp = str(spec.work / TMP) if spec.writable else "/nonexistent"
    defaults = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": BOX,
        "TMPDIR": tmp,
        "LC_ALL": "C.UTF-8",
        "USER": "box",
        "HIERA_BOX": BOX,
    }
    environment = {name: translate(value, moved) for name, value in {**defaults, **spec.env}.items()}
    argv = tuple(translate(word, moved) for word in spec.argv)
    readable = (*READABLE, stage, *(str(bind.host) for bind in spec.binds))
    return Placed(replace(spec, argv=argv, env=environment), readable)


def translate(text: str, moved: dict[str, str]) -> str:
    """Replace each path that lies at or below a key of `moved`; paths may follow `=` or `:` or an option's letters."""
    for inside, host in moved.items():
        text = _replace_path(text, inside, host)
    return text


def jail_command(placed: Placed, jail: Jail) -> Command:
    """The command line of the jail program around a spec."""
    spec = placed.spec
    status_fd, status_write = os.pipe()
    config = {
        "parent": os.getpid(),
        "status": status_write,
        "fds": list(spec.fds),
        "user": jail.user,
        "confined": jail.confined,
        "profiler": spec.profiler,
        "limits": {**resource_limits(spec.limits), "nproc": process_backstop(spec.limits)},
        "folder": str(spec.work),
        "readable": list(placed.readable),
        "writable": [str(spec.work)] if spec.writable else [],
        "devices": list(DEVICES),
        "env": dict(spec.env),
    }
    if not spec.writable:
        config["readable"] = [*placed.readable, str(spec.work)]
    program = (sys.executable, "-P", "-S", "-m", "hiera_mcp.sandbox.child.jail")
    environment = {"PYTHONPATH": str(Path(hiera_mcp.__file__).parent.parent)}
    return Command(
        argv=(*program, marshal.dumps(config).hex(), *spec.argv),
        env=environment,
        fds=(*spec.fds, status_write),
        status_fd=status_fd,
        owned_fds=(status_write,),
    )


def _replace_path(text: str, inside: str, host: str) -> str:
    pieces = text.split(inside)
    result = pieces[0]
    for piece in pieces[1:]:
        whole = (not piece or piece[0] in "/:") and not _continues_path(result)
        result += (host if whole else inside) + piece
    return result


def _continues_path(before: str) -> bool:
    """Whether the text so far ends inside a path, as `/other` before `/box` does."""
    word = before.rpartition(":")[2].rpartition("=")[2]
    return "/" in word


def _in_place(bind: Bind) -> bool:
    """Whether the path inside leads to the right file on the host as well."""
    return Path(bind.inside).resolve() == bind.host.resolve()


def _top(inside: str, kept: tuple[Path, ...]) -> str:
    """The folder to replace for a path that is not in place: the shortest one (command lines and PYTHONPATH name folders
    above it, such as /opt/hiera) that holds nothing which keeps its path."""
    parts = Path(inside).parts
    above = (Path(*parts[:count]) for count in range(3, len(parts)))
    free = (folder for folder in above if not any(path.is_relative_to(folder) for path in kept))
    return str(next(free, Path(inside)))


@cache
def _stage(binds: tuple[Bind, ...]) -> str:
    """A folder of links that lasts as long as this process."""
    folder = tempfile.mkdtemp(prefix="hiera-stage-")
    os.chmod(folder, 0o755)
    weakref.finalize(_stage, discard, Path(folder))
    for bind in binds:
        if _in_place(bind):
            continue
        link = Path(folder + bind.inside)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(bind.host.resolve())
    return folder
