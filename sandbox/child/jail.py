"""Starts one program under limits, and on request under Landlock and seccomp and as another user; then guards it.

    python -P -S -m hiera_mcp.sandbox.child.jail CONFIG PROGRAM [ARGUMENT …]

CONFIG is a dictionary, marshalled, in hexadecimal digits: each box waits for this program's start, so it imports little
(json and typing alone would double its time).
Two processes: the supervisor stays outside the confinement, adopts every orphan of the program, kills all that is left
when the program ends, and writes `{"exit-code": N}` to the status pipe. A change of uid clears PDEATHSIG, so it is set
after it.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import resource
import signal
import sys

from hiera_mcp.sandbox.child import landlock, seccomp
from hiera_mcp.sandbox.child.prctl import PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, prctl
from hiera_mcp.sandbox.child.tree import end_descendants, wait_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_CAPABILITIES = 64
_FAILED = 125


def main() -> None:
    config, argv = marshal.loads(bytes.fromhex(sys.argv[1])), sys.argv[2:]
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, _end)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != config["parent"]:
        os._exit(_FAILED)
    ready_read, ready_write = os.pipe()
    supervisor = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(ready_read)
        _become(config, argv, supervisor, ready_write)
    os.close(ready_write)
    for fd in config["fds"]:
        os.close(fd)
    _guard(pid, int(config["status"]), os.fdopen(ready_read, "rb"))


def _guard(pid: int, status_fd: int, ready: Any) -> NoReturn:
    """Wait for the program, then for everything that it left behind."""
    with ready:
        problem = ready.read().decode("utf-8", "replace")
    ended = wait_for(pid)
    code = ended if ended >= 0 else 128 - ended
    end_descendants()
    if problem:
        sys.stderr.write(f"jail: {problem}\n")
        sys.stderr.flush()
        os._exit(_FAILED)
    os.write(status_fd, b'{"exit-code": %d}' % code)
    os._exit(code)


def _end(_signal: int, _frame: object) -> None:
    """The launcher is gone."""
    end_descendants()
    os._exit(_FAILED)


def _become(config: dict[str, Any], argv: list[str], supervisor: int, ready: int) -> NoReturn:
    """In the child: confine, then run. What goes wrong before that is said on `ready`."""
    try:
        for number in (signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)  # the interpreter ignores the last two, and exec would keep that
        os.setsid()
        _limit(config["limits"])
        os.chdir(config["folder"])
        _drop(config["user"], config["confined"])
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(_FAILED)
        if config["confined"]:
            landlock.restrict(config["readable"], config["writable"], config["devices"])
            seccomp.install(seccomp.program(profiler=config["profiler"], own_namespaces=False))
        _close_all_but({0, 1, 2, ready, *config["fds"]})
    except (OSError, NotImplementedError) as e:
        os.write(ready, f"{type(e).__name__}: {e}".encode())
        os._exit(_FAILED)
    _run(argv, config["env"])


def _run(argv: list[str], environment: dict[str, str]) -> NoReturn:
    try:
        os.execvpe(argv[0], argv, environment)
    except OSError as e:
        sys.stderr.write(f"cannot run {argv[0]}: {e.strerror}\n")
        sys.stderr.flush()
        os._exit(127)


def _limit(limits: dict[str, int]) -> None:
    for name, value in limits.items():
        number = getattr(resource, "RLIMIT_" + name.upper())
        hard = resource.getrlimit(number)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (value, value))


def _drop(user: int, confined: bool) -> None:
    """Lose root: by another uid, or, where only root can reach the interpreter, by giving up every capability."""
    if user != os.geteuid():
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    elif confined and user == 0:
        _drop_capabilities()


def _drop_capabilities() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(_CAPABILITIES):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails for those that this kernel does not know
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    if libc.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())) != 0:
        raise OSError(ctypes.get_errno(), "capset failed")


def _close_all_but(kept: set[int]) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                continue  # the descriptor that listed the folder


if __name__ == "__main__":
    main()
