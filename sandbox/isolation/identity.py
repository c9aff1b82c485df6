"""Which user a box runs as, and handing the work folder over to that user.

A server that runs as root gives the box to `nobody` (uid 65534), because uid 0 defeats RLIMIT_NPROC (then a fork bomb
stops the host) and the permissions of files.
"""

import os
import stat
from pathlib import Path

from hiera_mcp.sandbox.isolation.box import BoxSpec

NOBODY = 65534
_DEPTH = 4


def box_user() -> int:
    """The host uid that a box shall have."""
    return NOBODY if os.geteuid() == 0 else os.geteuid()


def hidden_paths(spec: BoxSpec, uid: int) -> list[Path]:
    """Paths of the spec that `uid` cannot reach. The work folder itself will belong to it; what is above may not."""
    binds = [bind.host for bind in spec.binds if not can_read(bind.host, uid)]
    return binds if can_reach(spec.work, uid) else [*binds, spec.work]


def can_reach(path: Path, uid: int) -> bool:
    """Whether `uid`, without any group, may enter every folder above `path` and its link target."""
    resolved = path.resolve()
    folders = {*path.absolute().parents, *resolved.parents}
    return all(_may_enter(folder, uid) for folder in folders)


def can_read(path: Path, uid: int) -> bool:
    """Whether `uid`, without any group, may read `path` itself too; of a folder, its top level."""
    if not can_reach(path, uid):
        return False
    entry = path.stat()
    wanted = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(entry.st_mode) else 0)
    return entry.st_uid == uid or entry.st_mode & wanted == wanted


def hand_over(folder: Path, uid: int) -> None:
    """Make `folder` and what was put into it belong to `uid`. Never follows a link, and does not go deeper than this
    server's own files do: what lies below is a box's work and belongs to it already."""
    if os.geteuid() != 0:
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    _hand_over(fd, uid, _DEPTH)


def _hand_over(fd: int, uid: int, depth: int) -> None:
    """Closes `fd`."""
    try:
        os.fchown(fd, uid, uid)
        for name in os.listdir(fd):
            _hand_over_entry(fd, name, uid, depth - 1)
    finally:
        os.close(fd)


def _hand_over_entry(folder_fd: int, name: str, uid: int, depth: int) -> None:
    try:
        entry = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
        if stat.S_ISDIR(entry.st_mode) and depth:
            _hand_over(os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder_fd), uid, depth)
        elif entry.st_uid != uid:
            os.chown(name, uid, uid, dir_fd=folder_fd, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return  # another box that shares the folder removed or replaced it meanwhile


def _may_enter(folder: Path, uid: int) -> bool:
    try:
        entry = folder.stat()
    except OSError:
        return False
    return bool(entry.st_mode & (stat.S_IXUSR if entry.st_uid == uid else stat.S_IXOTH))
