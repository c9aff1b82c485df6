"""The store as the rest of the project sees it: one object, synchronous, safe to use from any thread."""

import json
from pathlib import Path

from pydantic import JsonValue

from hiera_mcp.errors import LostError, StoreError
from hiera_mcp.model.run import Event, JobState
from hiera_mcp.store.candidates import Candidates
from hiera_mcp.store.contracts import Contracts
from hiera_mcp.store.jobs import Jobs
from hiera_mcp.store.memory import Memories
from hiera_mcp.store.owners import Ownership
from hiera_mcp.store.runs import Runs
from hiera_mcp.store.sanitized import SanitizedCandidates


class Store(Contracts, Runs, Candidates, SanitizedCandidates, Jobs, Memories):
    """One SQLite database and its content-addressed files. Several servers may share them."""

    def __init__(self, path: Path, blobs: Path) -> None:
        super().__init__(path, blobs)
        try:
            self._ownership = Ownership(path.parent / "servers")
        except OSError as e:
            raise StoreError(
                f"Cannot write in {path.parent}: {e.strerror}.", todo="Free space or fix the rights."
            ) from e
        self.owner = self._ownership.name
        self.mark_interrupted()

    @classmethod
    def open(cls, path: Path, blobs: Path) -> "Store":
        """Open or create the database, migrate it, and mark the work of dead servers as interrupted.

        Raises:
            StoreError: it cannot be opened or migrated.
        """
        return cls(path, blobs)

    def close(self) -> None:
        super().close()
        self._ownership.close()

    def put_blob(self, data: bytes) -> str:
        """Store bytes; returns their SHA-256."""
        return self.blobs.put(data)

    def blob(self, sha: str) -> bytes:
        """The bytes with this SHA-256; NotFoundError when there are none."""
        return self.blobs.get(sha)

    def add_event(self, kind: str, data: JsonValue, run_id: str | None = None) -> None:
        """Append to the event log."""
        with self.write() as tx:
            tx.log(kind, data, run_id)

    def events(self, run_id: str | None = None, after: int = 0, limit: int = 200) -> tuple[Event, ...]:
        """Events with a number above `after`, in order."""
        where, values = ("n > ? AND run_id = ?", [after, run_id]) if run_id else ("n > ?", [after])
        rows = self.rows(f"SELECT * FROM events WHERE {where} ORDER BY n LIMIT ?", [*values, limit])
        return tuple(Event.model_validate({**row, "data": json.loads(row["data"])}) for row in rows)

    def mark_interrupted(self) -> None:
        """End the open jobs of servers that are dead, as interrupted. Done at every start, and again whenever the open
        work of others is looked at, since a server may be killed while this one runs."""
        sql = "SELECT DISTINCT owner FROM jobs WHERE state IN ('queued', 'running')"
        dead = [row["owner"] for row in self.rows(sql) if self._ownership.is_dead(row["owner"])]
        error = LostError("The server ended while this job was open.", todo="Submit the work again.").as_dict()
        for owner in dead:
            for row in self.rows("SELECT id FROM jobs WHERE owner = ? AND state IN ('queued', 'running')", [owner]):
                self.end_job(row["id"], JobState.INTERRUPTED, error=error)  # pyright: ignore[reportArgumentType]
