"""Which server owns a job, and whether it is alive: each server holds a file lock for as long as it lives."""

import contextlib
import fcntl
import os
import secrets
from pathlib import Path


class Ownership:
    """The present server's mark in the data folder. The kernel drops it however the process ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.name = secrets.token_hex(8)
        self._fd = os.open(self._path(self.name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def is_dead(self, owner: str) -> bool:
        """Whether the server of that name has ended. Forgets its file then."""
        if owner == self.name:
            return False
        try:
            fd = os.open(self._path(owner), os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(fd)
        with contextlib.suppress(FileNotFoundError):
            self._path(owner).unlink()
        return True

    def close(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._path(self.name).unlink()
        os.close(self._fd)

    def _path(self, owner: str) -> Path:
        return self._folder / f"{owner}.lock"
