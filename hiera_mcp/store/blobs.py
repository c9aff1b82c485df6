"""Content-addressed files. A blob is on disk, complete, before any row names it."""

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

from hiera_mcp.errors import NotFoundError, StoreError


class Blobs:
    """A folder of files named by the SHA-256 of their bytes. Safe for several processes at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, data: bytes) -> str:
        """Store bytes durably; returns their SHA-256 in hex.

        Raises:
            StoreError: the file cannot be written (disk full, permissions).
        """
        sha = hashlib.sha256(data).hexdigest()
        path = self._path(sha)
        if path.exists():
            return sha
        try:
            path.parent.mkdir(exist_ok=True)
            self._write(path, data)
        except OSError as e:
            raise StoreError(f"Cannot write {path}: {e.strerror}.", todo="Free space or fix the permissions.") from e
        return sha

    def get(self, sha: str) -> bytes:
        """The bytes of a blob.

        Raises:
            NotFoundError: there is no such blob.
        """
        try:
            return self._path(sha).read_bytes()
        except FileNotFoundError as e:
            raise NotFoundError(f"No stored file {sha!r}.", todo="It was removed from the data folder.") from e

    def _path(self, sha: str) -> Path:
        if len(sha) != 64 or not all(c in "0123456789abcdef" for c in sha):
            raise NotFoundError(f"{sha!r} is not a SHA-256 in hex.")
        return self._folder / sha[:2] / sha

    def _write(self, path: Path, data: bytes) -> None:
        fd, name = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(fd, "wb") as f:
                f.write(data)
                f.flush()
                os.fsync(f.fileno())
            os.rename(name, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            raise
        _sync_folder(path.parent)
        _sync_folder(self._folder)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
