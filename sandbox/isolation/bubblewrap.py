"""The first backend: bubblewrap, with a file system, processes, network and IPC of the box's own.

bwrap(1). Mechanisms that are easy to get wrong: `--dev-bind` of a GPU node must come after `--dev` and before the remount
of /dev; a tmpfs without `--size` takes half of the memory; without `--cap-drop ALL` a box set up by root can remount its
read-only binds; RLIMIT_NPROC must be set inside, because outside it counts all processes of the user; the private file
systems (/dev, /dev/shm, /tmp) must come before the binds, or they hide what is bound from below them (a venv in /tmp).
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from hiera_mcp.errors import NoIsolationError
from hiera_mcp.sandbox.child import seccomp
from hiera_mcp.sandbox.devices import GpuDevice
from hiera_mcp.sandbox.isolation.binds import driver_folders
from hiera_mcp.sandbox.isolation.box import BOX, BoxLimits, BoxSpec, Command
from hiera_mcp.sandbox.isolation.identity import NOBODY, box_user, hand_over, hidden_paths
from hiera_mcp.sandbox.isolation.limits import process_backstop, start_limits
from hiera_mcp.sandbox.isolation.staging import can_stage, stage

INSTALL = "Install it, for example `apt-get install bubblewrap` or `dnf install bubblewrap`."

_TOP_LEVEL = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_FILES = ("/etc/ld.so.cache", "/etc/alternatives", "/sys/devices/system")
"""Beside /usr: how libraries are found, what `cc` means, and the processor's topology."""
_GPU_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-caps", "/dev/dxg")
_SHM_BYTES = 256 << 20
_TMP_BYTES = 1 << 30


class Bubblewrap:
    """Namespaces, minimal read-only binds and a seccomp filter by bwrap."""

    name = "bubblewrap"

    def prepare(self, spec: BoxSpec) -> None:
        hand_over(spec.work, _user(spec))

    def command(self, spec: BoxSpec) -> Command:
        """The command line for a box.

        Raises:
            NoIsolationError: bwrap is not installed, or a box with a GPU would have to run as root.
        """
        bwrap = find_bwrap()
        user = _user(spec)
        if user == 0 and spec.gpu is not None:
            raise _root_with_gpu(spec)
        staged = stage(spec, hidden_paths(spec, user) if user != os.geteuid() else ())
        filter_fd = memory_file("seccomp", seccomp.program(profiler=spec.profiler))
        status_fd, status_write = os.pipe()
        argv = (
            *staged.prefix,
            *_become(user),
            *start_limits(spec.limits),
            bwrap,
            *namespace_arguments(user, can_disable_userns(bwrap)),
            *mount_arguments(staged.spec),
            *environment_arguments(spec),
            *("--seccomp", str(filter_fd), "--json-status-fd", str(status_write)),
            "--",
            *_inner_limits(spec.limits),
            *spec.argv,
        )
        owned = (filter_fd, status_write)
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        fds = (*spec.fds, *owned)
        return Command(argv, environment, fds, status_fd, owned, pid_namespace=True, own_processes=1)


def find_bwrap() -> str:
    """Path of bwrap.

    Raises:
        NoIsolationError: there is none.
    """
    path = shutil.which("bwrap")
    if path is None:
        raise NoIsolationError("bubblewrap (the program bwrap) is not installed.", todo=INSTALL)
    return path


@cache
def can_disable_userns(bwrap: str) -> bool:
    """Whether this bwrap knows --disable-userns (0.8). Without it the seccomp filter alone forbids new namespaces."""
    asked = [bwrap, "--help"]
    shown = subprocess.run(asked, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, timeout=10)
    return "--disable-userns" in shown.stdout + shown.stderr


def namespace_arguments(user: int, disable_userns: bool) -> tuple[str, ...]:
    """Own namespaces, no capability, death with the launcher. `user` is the host uid; root is shown as nobody."""
    namespaces = ("user", "pid", "net", "ipc", "uts", "cgroup-try")
    shown = str(NOBODY if user == 0 else user)
    return (
        *(f"--unshare-{name}" for name in namespaces),
        *(("--disable-userns",) if disable_userns else ()),
        *("--uid", shown, "--gid", shown),
        *("--cap-drop", "ALL", "--die-with-parent", "--new-session", "--hostname", "box"),
    )


def mount_arguments(spec: BoxSpec) -> tuple[str, ...]:
    """The file system of a box; the order matters."""
    tmp_bytes = min(spec.limits.disk_bytes, _TMP_BYTES)
    gpu = spec.gpu is not None
    return (
        *("--ro-bind", "/usr", "/usr"),
        *_top_level(),
        *_words(("--ro-bind-try", path, path) for path in _FILES),
        *("--proc", "/proc", "--dev", "/dev"),
        *(gpu_arguments(spec.gpu) if spec.gpu is not None else ("--remount-ro", "/proc")),
        *("--size", str(_SHM_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),
        *("--size", str(tmp_bytes), "--tmpfs", "/tmp"),
        *_words(("--ro-bind", str(bind.host), bind.inside) for bind in spec.binds),
        *_words(("--ro-bind", folder, folder) for folder in (driver_folders() if gpu else ())),
        *("--bind" if spec.writable else "--ro-bind", str(spec.work), BOX, "--chdir", BOX, "--remount-ro", "/"),
    )


def gpu_arguments(gpu: GpuDevice) -> tuple[str, ...]:
    """The nodes of one GPU. /proc stays writable then: libcuda sets the names of its threads there, or fails with 304."""
    return tuple(_words(("--dev-bind-try", node, node) for node in (*_GPU_NODES, gpu.node)))


def environment_arguments(spec: BoxSpec) -> tuple[str, ...]:
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": BOX if spec.writable else "/tmp",
        "TMPDIR": "/tmp",
        "LC_ALL": "C.UTF-8",
        "USER": "box",
        "HIERA_BOX": BOX,
        **(_driver_environment() if spec.gpu is not None else {}),
        **spec.env,
    }
    return ("--clearenv", *_words(("--setenv", name, value) for name, value in environment.items()))


def memory_file(name: str, content: bytes) -> int:
    """A descriptor from which `content` can be read."""
    fd = os.memfd_create(name)
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _user(spec: BoxSpec) -> int:
    """The host uid of the box. Root remains only where it may not mount, and nobody else can reach what the box needs:
    then the namespace shows it as nobody, without a capability, and the watcher alone stops fork bombs."""
    user = box_user()
    if user == os.geteuid() or can_stage() or not hidden_paths(spec, user):
        return user
    return os.geteuid()


def _root_with_gpu(spec: BoxSpec) -> NoIsolationError:
    """libcuda needs a writable /proc, in which host uid 0 could change the settings of the host's kernel."""
    hidden = ", ".join(str(path) for path in hidden_paths(spec, NOBODY))
    return NoIsolationError(
        f"A box with a GPU cannot run as root, and no other user can reach {hidden}.",
        todo="Put the interpreter and the data folder where every user may enter (under /opt, say), or allow mounting.",
    )


def _become(user: int) -> tuple[str, ...]:
    if user == os.geteuid():
        return ()
    return ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=-all", "--")


def _inner_limits(limits: BoxLimits) -> tuple[str, ...]:
    return ("/usr/bin/prlimit", f"--nproc={process_backstop(limits)}", "--")


def _top_level() -> Iterator[str]:
    for path in _TOP_LEVEL:
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        elif Path(path).is_dir():
            yield from ("--ro-bind", path, path)


def _driver_environment() -> dict[str, str]:
    folders = driver_folders()
    return {"LD_LIBRARY_PATH": ":".join(folders)} if folders else {}


def _words(groups: Iterator[tuple[str, ...]]) -> Iterator[str]:
    return (word for group in groups for word in group)
