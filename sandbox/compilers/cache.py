"""Finished builds by content: one folder per key, written aside and renamed into place.

Safe with several launchers on one folder: a build appears as a whole or not at all, and whoever comes second takes
what is there.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Generator
from pathlib import Path

from pydantic import ValidationError

from hiera_mcp.errors import SandboxError
from hiera_mcp.model.base import Model
from hiera_mcp.model.evaluation import Build
from hiera_mcp.sandbox.compilers.base import Failure
from hiera_mcp.sandbox.isolation.folders import discard
from hiera_mcp.sandbox.space import Evidence

MOST_ARTEFACT_BYTES = 256 << 20
_RECORD = "record.json"
_BOX = "box"


class Record(Model):
    """What is remembered of a build, besides its artefacts."""

    build: Build
    evidence: Evidence
    instruction_mix: dict[str, int]
    failure: Failure | None
    reason: str
    compiler: str


class BuildCache:
    """Builds below one folder: `builds/KEY/record.json`, and `builds/KEY/box/`, which a runner sees as /box."""

    def __init__(self, folder: Path) -> None:
        self._builds = folder / "builds"
        self._scratch = folder / "scratch"

    def artefacts(self, key: str) -> Path:
        return self._builds / key / _BOX

    def find(self, key: str) -> Record | None:
        """The build under this key; one that cannot be read counts as absent."""
        try:
            return Record.model_validate_json((self._builds / key / _RECORD).read_bytes())
        except (OSError, ValidationError):
            return None

    def store(self, key: str, record: Record, artefacts: dict[str, bytes]) -> None:
        """Keep a build.

        Raises:
            SandboxError: the folder cannot be written.
        """
        with self.scratch() as aside:
            (aside / _BOX).mkdir(mode=0o755)
            for name, data in artefacts.items():
                _write(aside / _BOX / name, data)
            _write(aside / _RECORD, record.model_dump_json().encode())
            self._publish(aside, self._builds / key)

    @contextlib.contextmanager
    def scratch(self) -> Generator[Path]:
        """A fresh folder, removed afterwards."""
        folder = self._scratch / secrets.token_hex(8)
        try:
            folder.mkdir(parents=True, mode=0o755)
        except OSError as e:
            raise SandboxError(f"The build folder {folder.parent} cannot be written: {e.strerror}.") from e
        try:
            yield folder
        finally:
            _remove(folder)

    def _publish(self, aside: Path, place: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists() and self.find(place.name) is None:
            _remove(place)
        try:
            os.rename(aside, place)
        except OSError as e:
            if not place.is_dir():
                raise SandboxError(f"The build cannot be kept in {place.parent}: {e.strerror}.") from e


def read_artefact(path: Path, limit: int = MOST_ARTEFACT_BYTES) -> bytes | None:
    """The bytes of a file that untrusted code may have made; None unless it is a regular file within the limit."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(fd, "rb") as file:
        entry = os.fstat(fd)
        if not stat.S_ISREG(entry.st_mode) or entry.st_size > limit:
            return None
        return file.read(limit)


def _remove(folder: Path) -> None:
    """Compilers, and what they were made to run, wrote into it; what resists is left to pruning."""
    with contextlib.suppress(OSError):
        discard(folder)


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as e:
        raise SandboxError(f"The build folder cannot be written: {e.strerror}.", todo="Free some disk space.") from e
    path.chmod(0o755 if path.suffix == ".so" else 0o644)
