"""Work folders: one root per launcher, one fresh folder per box, nothing left behind."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Generator
from pathlib import Path

from hiera_mcp.sandbox.isolation.folders import discard

PREFIX = "hiera-work-"
FRESH = ".hiera-work-new-"
OPEN_TO_BOXES = 0o711
"""Boxes may run as another user: they may pass through the root, and cannot list its unguessable names."""


class WorkRoot:
    """A folder that is locked as long as its launcher lives."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def create(cls, parent: Path | None = None) -> "WorkRoot":
        """Make a root below `parent` (the system's temporary folder); roots of dead launchers are removed first."""
        parent = parent or Path(tempfile.gettempdir())
        remove_stale(parent)
        fresh = Path(tempfile.mkdtemp(prefix=FRESH, dir=parent))
        lock = _lock(fresh)
        fresh.chmod(OPEN_TO_BOXES)
        # Renamed only once it is locked: a root that another launcher can find is either locked or stale.
        path = fresh.rename(parent / (PREFIX + fresh.name.removeprefix(FRESH)))
        return cls(path, lock)

    @contextlib.contextmanager
    def folder(self, kind: str) -> Generator[Path]:
        """A fresh folder for one job, removed with all its content."""
        path = self.make(kind)
        try:
            yield path
        finally:
            remove(path)

    def make(self, kind: str) -> Path:
        path = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=self.path))
        path.chmod(OPEN_TO_BOXES)
        return path

    def discard(self, path: Path) -> None:
        """Remove a folder that `make` made."""
        remove(path)

    def remove(self) -> None:
        remove(self.path)
        os.close(self._lock)


def remove(path: Path) -> None:
    """Remove a folder in which a box could write, whatever it left there; what resists is left to the next start."""
    with contextlib.suppress(OSError):
        discard(path)


def remove_stale(parent: Path) -> None:
    """Remove the roots below `parent` whose launchers are dead: the kernel released their locks."""
    for path in parent.glob(PREFIX + "*"):
        try:
            lock = _lock(path)
        except OSError:
            continue  # locked by a living launcher, another user's, or just gone
        remove(path)
        os.close(lock)


def _lock(path: Path) -> int:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
    return fd
