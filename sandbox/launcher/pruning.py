"""Keep the compile cache bounded: the builds that were used longest ago go first."""

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

from hiera_mcp.sandbox.isolation.folders import discard
from hiera_mcp.sandbox.isolation.usage import folder_bytes

MOST_BYTES = 4 << 30
SAFE_S = 3600.0
"""What was touched so recently may be in use by another launcher."""


@dataclass(frozen=True)
class Entry:
    """One folder of the cache."""

    path: Path
    bytes: int
    """Of the disk."""
    used: float
    """Newest modification time of the folder and of what lies directly in it."""


def prune(cache: Path, most_bytes: int = MOST_BYTES, now: float | None = None) -> int:
    """Remove old builds until the rest fits into `most_bytes`, and work folders that a killed launcher left.

    Returns:
        How many folders were removed.
    """
    now = time.time() if now is None else now
    scratch = [e for e in _entries(cache / "scratch") if now - e.used > SAFE_S]
    doomed = [*scratch, *surplus(_entries(cache / "builds"), most_bytes, now)]
    for entry in doomed:
        with contextlib.suppress(OSError):  # untrusted code wrote there: what resists stays
            discard(entry.path)
    return len(doomed)


def surplus(entries: list[Entry], most_bytes: int, now: float) -> list[Entry]:
    """The entries to remove, the oldest first."""
    total = sum(e.bytes for e in entries)
    chosen: list[Entry] = []
    for entry in sorted(entries, key=lambda e: e.used):
        if total <= most_bytes or now - entry.used <= SAFE_S:
            break
        chosen.append(entry)
        total -= entry.bytes
    return chosen


def _entries(folder: Path) -> list[Entry]:
    try:
        return [entry for path in folder.iterdir() if (entry := _entry(path)) is not None]
    except OSError:
        return []  # there is no such folder, or it is not ours


def _entry(path: Path) -> Entry | None:
    try:
        used = max(p.lstat().st_mtime for p in (path, *path.iterdir()))
    except OSError:
        return None  # another launcher removed it meanwhile
    return Entry(path, folder_bytes(path, MOST_BYTES), used)
