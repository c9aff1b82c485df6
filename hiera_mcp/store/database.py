"""The SQLite connection: WAL, synchronous=FULL, one writer at a time, safe migrations and checkpoints.

Every write runs under BEGIN IMMEDIATE: a deferred transaction that reads first fails at once when another process
commits in between. SQLite up to 3.51.2 can corrupt a WAL database when one connection writes in the instant in which
another checkpoints (sqlite.org/wal.html#walresetbug), so automatic checkpoints are off, writers hold a file lock
shared, and a checkpoint needs it exclusively.
"""

import fcntl
import json
import logging
import os
import secrets
import sqlite3
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from hiera_mcp.errors import NotFoundError, StoreError
from hiera_mcp.store.blobs import Blobs
from hiera_mcp.store.migrations import migrations

Row = dict[str, Any]

log = logging.getLogger(__name__)

_WAL_LIMIT = 8 << 20
"""A write-ahead log longer than this is folded into the database."""


def now() -> str:
    """The present time, UTC, ISO 8601 with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def new_id(prefix: str) -> str:
    """An unguessable handle such as `r_5f0c…` (96 random bits)."""
    return f"{prefix}_{secrets.token_hex(12)}"


class Transaction:
    """The present write transaction."""

    def __init__(self, db: Database) -> None:
        self._db: Any = db

    def execute(self, sql: str, values: Sequence[object] = ()) -> int:
        """Run one statement; returns how many rows it changed."""
        return self._db.execute(sql, list(values)).rowcount

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """All rows of a query, as this transaction sees them."""
        return list(self._db.query(sql, list(values)))

    def insert(self, table: str, row: Mapping[str, object]) -> None:
        """Insert one row."""
        names = ", ".join(row)
        marks = ", ".join("?" for _ in row)
        self.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))

    def log(self, kind: str, data: object, run_id: str | None) -> None:
        """Append to the event log."""
        self.insert("events", {"run_id": run_id, "at": now(), "kind": kind, "data": json.dumps(data)})


class Connection:
    """One open database, used by one thread at a time; `write` and `rows` take the lock themselves."""

    def __init__(self, path: Path, blobs: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.blobs = Blobs(blobs)
            self._checkpoint_lock = os.open(f"{path}.checkpoint", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self.db: Any = self._open(path)
        except (OSError, sqlite3.Error) as e:
            raise StoreError(
                f"Cannot open the database {path}: {e}.", todo="Choose another HIERA_DATA_DIR (--data-dir)."
            ) from e

    def _open(self, path: Path) -> Any:
        # SQLite does not wait for other openers while it switches to WAL, so they take turns here.
        fcntl.flock(self._checkpoint_lock, fcntl.LOCK_EX)
        try:
            return self._prepared(path)
        finally:
            fcntl.flock(self._checkpoint_lock, fcntl.LOCK_UN)

    def _prepared(self, path: Path) -> Any:
        connection = sqlite3.connect(path, timeout=30, isolation_level="DEFERRED", check_same_thread=False)
        db: Any = Database(connection)
        db.execute("PRAGMA synchronous=FULL")
        db.execute("PRAGMA foreign_keys=ON")
        db.enable_wal()
        db.execute("PRAGMA wal_autocheckpoint=0")
        db.execute("BEGIN IMMEDIATE")
        try:
            migrations.apply(db)
        except BaseException:
            db.rollback()
            raise
        db.commit()
        return db

    def close(self) -> None:
        with self._lock:
            self.db.close()
            os.close(self._checkpoint_lock)

    @contextmanager
    def if_free(self) -> Generator[bool]:
        """Whether no other thread uses the connection, which is kept so."""
        free = self._lock.acquire(blocking=False)
        try:
            yield free
        finally:
            if free:
                self._lock.release()

    @contextmanager
    def write(self) -> Generator[Transaction]:
        """A write transaction. Commits durably at the end, or rolls back when the block raises.

        Raises:
            StoreError: the database cannot be written (disk full, locked for longer than 30 s).
        """
        with self._lock:
            fcntl.flock(self._checkpoint_lock, fcntl.LOCK_SH)
            try:
                self.db.execute("BEGIN IMMEDIATE")
                try:
                    yield Transaction(self.db)
                except BaseException:
                    self.db.rollback()
                    raise
                self.db.commit()
            except sqlite3.OperationalError as e:
                self._roll_back()
                raise StoreError(f"Cannot write {self.path}: {e}.", todo="Free disk space, then repeat.") from e
            finally:
                fcntl.flock(self._checkpoint_lock, fcntl.LOCK_UN)
            self._checkpoint_when_long()

    def _roll_back(self) -> None:
        if self.db.conn is not None and self.db.conn.in_transaction:
            self.db.rollback()

    def _checkpoint_when_long(self) -> None:
        wal = Path(f"{self.path}-wal")
        if not wal.exists() or wal.stat().st_size < _WAL_LIMIT:
            return
        try:
            fcntl.flock(self._checkpoint_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        try:
            self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.OperationalError as e:  # what was written is safe in the log; the next write tries again
            log.warning("the log of %s is not folded in: %s", self.path, e)
        finally:
            fcntl.flock(self._checkpoint_lock, fcntl.LOCK_UN)

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """All rows of a query that changes nothing; sqlite-utils' own `query` guards against others, for three statements.

        Raises:
            StoreError: the database cannot be read.
        """
        with self._lock:
            try:
                cursor: sqlite3.Cursor = self.db.execute(sql, list(values))
                names = [column[0] for column in cursor.description]
                return [dict(zip(names, row, strict=True)) for row in cursor]
            except sqlite3.OperationalError as e:
                raise StoreError(f"Cannot read {self.path}: {e}.", todo="Free disk space, then repeat.") from e

    def one(self, table: str, row_id: str, what: str) -> Row:
        """The row with this id.

        Raises:
            NotFoundError: there is none; the message lists the newest ids that exist.
        """
        found = self.rows(f"SELECT * FROM {table} WHERE id = ?", [row_id])
        if found:
            return found[0]
        known = [str(r["id"]) for r in self.rows(f"SELECT id FROM {table} ORDER BY rowid DESC LIMIT 5")]
        todo = "The newest are listed." if known else f"There is no {what} yet."
        raise NotFoundError(f"No {what} {row_id!r}.", todo=todo, valid=known)
