"""Tries, inside a box, what a box must deny, and prints what happened as one JSON object.

    python -P -S -m hiera_mcp.sandbox.child.denials CONFIG

CONFIG is JSON: `secret` (a file outside), `token` (a value in another process's environment), `victim` and `victim_start`
(that process and its start time), `outside` and `memory` (folders outside, of a disk and of shared memory), `port`,
`abstract`, `socket` (listeners of the host). The files may be read and the folders written by everybody: only the box is
between them and what runs here.
Each value printed is `allowed` or a short reason why not.
"""

import ctypes
import errno
import json
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

_NEW_USER = 0x10000000
_ALL_EVENTS = 0xFFF


def main() -> None:
    config = json.loads(sys.argv[1])
    json.dump({name: _attempt(action) for name, action in attempts(config).items()}, sys.stdout)


def attempts(config: dict[str, Any]) -> dict[str, Callable[[], object]]:
    """Name → what to try. Each returns when it succeeds and raises OSError when it does not."""
    victim, start = int(config["victim"]), str(config["victim_start"])
    return {
        "write_work": lambda: _write("."),
        "start_process": _start_process,
        "socketpair": lambda: [end.close() for end in socket.socketpair()],
        "read_secret": lambda: _read(config["secret"]),
        "list_outside": lambda: os.listdir(str(config["outside"])),
        "write_outside": lambda: _write(config["outside"]),
        "write_shared_memory": lambda: _write(config["memory"]),
        "write_usr": lambda: _write("/usr"),
        "change_mode": lambda: os.chmod(config["secret"], 0o644),
        "watch_files": lambda: _system_call("inotify_add_watch", config["outside"]),
        "read_environment": lambda: _find_token(config["token"]),
        "signal_process": lambda: _signal(victim, start),
        "trace_process": lambda: _read_memory(victim, start),
        "tcp": lambda: _connect(socket.AF_INET, ("127.0.0.1", int(config["port"]))),
        "udp": lambda: _send(("127.0.0.1", int(config["port"]))),
        "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close(),
        "abstract_socket": lambda: _connect(socket.AF_UNIX, "\0" + config["abstract"]),
        "path_socket": lambda: _connect(socket.AF_UNIX, config["socket"]),
        "outlasting_memory": lambda: _system_call("shmget"),
        "user_namespace": lambda: _system_call("unshare"),
        "mount": lambda: _system_call("mount"),
        "gpu": lambda: os.close(os.open("/dev/nvidiactl", os.O_RDWR)),
        "be_root": _be_root,
        "kernel_settings": lambda: os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)),
    }


def _attempt(action: Callable[[], object]) -> str:
    try:
        action()
    except OSError as e:
        return errno.errorcode.get(e.errno or 0, type(e).__name__)
    return "allowed"


def _read(path: str) -> None:
    with open(path, "rb") as file:
        file.read(1)


def _write(folder: str) -> None:
    path = os.path.join(folder, ".hiera-probe")
    with open(path, "w", encoding="ascii") as file:
        file.write("x")
    os.unlink(path)


def _start_process() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _find_token(token: str) -> None:
    """Look into the environment of every process that can be seen."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if token.encode() in file.read():
                    return
        except OSError:
            continue
    raise FileNotFoundError(errno.ENOENT, "no process has it")


def _signal(pid: int, start: str) -> None:
    _same_process(pid, start)
    os.kill(pid, 0)


def _read_memory(pid: int, start: str) -> None:
    _same_process(pid, start)
    _read(f"/proc/{pid}/maps")


def _same_process(pid: int, start: str) -> None:
    """Refuse a process of our own that happens to have the number. Where /proc hides it, the number is meant."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            seen = file.read().rpartition(b")")[2].split()[19].decode()
    except PermissionError:
        return
    if seen != start:
        raise ProcessLookupError(errno.ESRCH, "another process")


def _connect(family: int, address: Any) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as end:
        end.settimeout(2)
        end.connect(address)


def _send(address: tuple[str, int]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.sendto(b"x", address)


def _system_call(name: str, path: str = "") -> None:
    """Make a call of the C library that Python does not offer."""
    libc = ctypes.CDLL(None, use_errno=True)
    calls: dict[str, Callable[[], int]] = {
        "inotify_add_watch": lambda: libc.inotify_add_watch(libc.inotify_init1(0), path.encode(), _ALL_EVENTS),
        "shmget": lambda: libc.shmget(0, 4096, 0o1600),
        "unshare": lambda: libc.unshare(_NEW_USER),
        "mount": lambda: libc.mount(b"none", os.getcwd().encode(), b"tmpfs", 0, None),
    }
    if calls[name]() < 0:
        raise OSError(ctypes.get_errno(), name)


def _be_root() -> None:
    if os.geteuid() != 0:
        raise PermissionError(errno.EPERM, "not root")


if __name__ == "__main__":
    main()
