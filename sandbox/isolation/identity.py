"""Which user a box runs as, and handing the work folder over to that user.

A server that runs as root gives the box to `nobody` (uid 65534), because uid 0 defeats RLIMIT_NPROC and the permissions
of files. But an interpreter below a folder that only root may enter (a venv made from /root/.pyenv, say) cannot be bound
by anyone else: then the sandbox itself is set up by root, and the box keeps root's uid in a user namespace where it is
shown as 65534 and has no capability.
"""

import os
import stat
from pathlib import Path

from hiera_mcp.sandbox.isolation.box import BoxSpec

NOBODY = 65534


def box_user(spec: BoxSpec) -> int:
    """The host uid of the box's processes."""
    own = os.geteuid()
    if own != 0:
        return own
    open_to_all = can_reach(spec.work, NOBODY) and all(can_read(bind.host, NOBODY) for bind in spec.binds)
    return NOBODY if open_to_all else own


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
    """Make `folder` and all in it belong to `uid`. Never follows a link: the content may be hostile."""
    if os.geteuid() != 0:
        return
    for _, folders, files, fd in os.fwalk(folder, follow_symlinks=False):
        os.fchown(fd, uid, uid)
        for name in (*folders, *files):
            _own(name, fd, uid)


def _own(name: str, folder_fd: int, uid: int) -> None:
    try:
        if os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_uid != uid:
            os.chown(name, uid, uid, dir_fd=folder_fd, follow_symlinks=False)
    except FileNotFoundError:
        return  # another box that shares the folder removed it meanwhile


def _may_enter(folder: Path, uid: int) -> bool:
    try:
        entry = folder.stat()
    except OSError:
        return False
    return bool(entry.st_mode & (stat.S_IXUSR if entry.st_uid == uid else stat.S_IXOTH))
