"""Reading what a box left behind: it may have put anything there."""

import os
import stat
from pathlib import Path

RESULT_BYTES = 64 << 20


def read_result(path: Path) -> bytes | None:
    """What a box left at `path`: a regular file of a sane size, never a link, a pipe or a device; None otherwise."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(fd)
        sane = stat.S_ISREG(status.st_mode) and status.st_size <= RESULT_BYTES
        return _read(fd, status.st_size) if sane else None
    finally:
        os.close(fd)


def _read(fd: int, size: int) -> bytes:
    parts: list[bytes] = []
    while size > 0 and (part := os.read(fd, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
