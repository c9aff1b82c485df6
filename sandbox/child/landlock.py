"""Landlock by plain system calls (Documentation/userspace-api/landlock.rst): files, TCP, abstract sockets, signals."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""The same numbers on x86-64 and aarch64."""
_EXECUTE, _WRITE, _READ, _READ_DIR = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_BLOCK, _TRUNCATE, _IOCTL = 64, 2048, 16384, 32768
_FILE_RIGHTS = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_RIGHTS_OF_ABI = {1: 13, 2: 14, 3: 15, 4: 15}
"""Number of file rights; 16 from ABI 5 on."""
_TCP = 3
_SCOPES = 3
"""Abstract Unix sockets and signals."""
NEEDED_ABI = 6
"""Before it, signals to other processes of the same user cannot be stopped."""


def abi() -> int:
    """The Landlock ABI of the running kernel; 0 when it has none."""
    return max(0, _libc().syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(1)))


def restrict(readable: Iterable[str], writable: Iterable[str], devices: Iterable[str]) -> None:
    """Confine this process and all that it will start. Paths that do not exist are skipped.

    Raises:
        OSError: the kernel's Landlock is absent or too old.
    """
    level = abi()
    if level < NEEDED_ABI:
        raise OSError(errno.ENOSYS, f"Landlock ABI {NEEDED_ABI} (Linux 6.12) is needed, this kernel has {level}")
    handled = (1 << _RIGHTS_OF_ABI.get(level, 16)) - 1
    attributes = struct.pack("=QQQ", handled, _TCP, _SCOPES)
    ruleset = _check(_libc().syscall(_CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0)))
    rules = (
        (readable, _EXECUTE | _READ | _READ_DIR),
        (devices, _READ | _WRITE | _IOCTL),
        (writable, handled & ~(_MAKE_CHAR | _MAKE_BLOCK)),
    )
    for paths, rights in rules:
        for path in paths:
            _allow(ruleset, path, rights)
    no_new_privileges = 38
    _check(_libc().prctl(no_new_privileges, 1, 0, 0, 0))
    _check(_libc().syscall(_RESTRICT, ruleset, ctypes.c_uint(0)))
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    folder = stat.S_ISDIR(os.fstat(fd).st_mode)
    rule = struct.pack("=Qi", rights if folder else rights & _FILE_RIGHTS, fd)
    _check(_libc().syscall(_ADD, ruleset, 1, rule, ctypes.c_uint(0)))
    os.close(fd)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return result
