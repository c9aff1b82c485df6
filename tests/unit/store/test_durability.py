"""Nothing that was acknowledged is lost; several servers share one database."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from hiera_mcp.errors import NotFoundError, StoreError
from hiera_mcp.model.run import JobState
from hiera_mcp.store import Store

WRITER = """
import sys
from pathlib import Path
from hiera_mcp.store import Store
folder = Path(sys.argv[1])
store = Store.open(folder / "hiera.db", folder / "blobs")
job, _ = store.add_job("evaluate", None, {"from": "writer"})
store.start_job(job.id)
print(job.id, flush=True)
n = 0
while True:
    sha = store.put_blob(f"{sys.argv[2]} {n}".encode())
    store.add_event("tick", {"writer": sys.argv[2], "n": n, "sha": sha})
    print(n, flush=True)
    n += 1
"""


def start_writer(folder: Path, name: str) -> subprocess.Popen[str]:
    code = textwrap.dedent(WRITER)
    return subprocess.Popen([sys.executable, "-c", code, str(folder), name], stdout=subprocess.PIPE, text=True)


def kill_after(writer: subprocess.Popen[str], lines: int) -> tuple[str, int]:
    """Let a writer acknowledge some writes, kill -9 it; returns its job and the last acknowledged number."""
    assert writer.stdout is not None
    job_id = writer.stdout.readline().strip()
    for _ in range(lines):
        writer.stdout.readline()
    writer.send_signal(signal.SIGKILL)
    rest = writer.stdout.read().split()
    writer.wait()
    return job_id, int(rest[-1]) if rest else lines - 1


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    writers = {name: start_writer(tmp_path, name) for name in ("a", "b")}
    acknowledged = {name: kill_after(writer, 25) for name, writer in writers.items()}
    store = Store.open(tmp_path / "hiera.db", tmp_path / "blobs")
    try:
        for name, (_, last) in acknowledged.items():
            ticks = [e.data for e in store.events(limit=10_000) if e.kind == "tick"]
            mine = [t for t in ticks if isinstance(t, dict) and t["writer"] == name]
            assert [t["n"] for t in mine][: last + 1] == list(range(last + 1))
            assert all(store.blob(str(t["sha"])) == f"{name} {t['n']}".encode() for t in mine)
        assert store.rows("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
        assert store.rows("PRAGMA foreign_key_check") == []
    finally:
        store.close()


def test_the_next_start_marks_the_work_of_a_killed_server_as_interrupted(tmp_path: Path) -> None:
    job_id, _ = kill_after(start_writer(tmp_path, "a"), 1)
    store = Store.open(tmp_path / "hiera.db", tmp_path / "blobs")
    job = store.job(job_id)
    store.close()
    assert job.state is JobState.INTERRUPTED
    assert isinstance(job.error, dict) and "Submit the work again" in str(job.error["todo"])


def test_the_work_of_a_living_server_is_left_alone(open_store: Callable[[], Store]) -> None:
    first = open_store()
    job, _ = first.add_job("evaluate", None, {})
    second = open_store()
    assert second.job(job.id).state is JobState.QUEUED


def test_many_processes_may_create_the_database_at_once(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from hiera_mcp.store import Store\n"
    code += "f = Path(sys.argv[1]); Store.open(f / 'hiera.db', f / 'blobs').add_event('hello', 1)"
    started = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) for _ in range(4)]
    assert [p.wait() for p in started] == [0, 0, 0, 0]
    store = Store.open(tmp_path / "hiera.db", tmp_path / "blobs")
    assert [e.kind for e in store.events()] == ["hello"] * 4
    store.close()


def test_an_idempotency_key_returns_the_earlier_job(store: Store) -> None:
    first, created = store.add_job("check", None, {}, "key")
    again, created_again = store.add_job("check", None, {}, "key")
    assert (created, created_again, again.id) == (True, False, first.id)


def test_a_job_ends_once(store: Store) -> None:
    job, _ = store.add_job("check", None, {})
    store.start_job(job.id)
    store.progress_job(job.id, "half", 0.5)
    assert (store.job(job.id).message, store.job(job.id).progress) == ("half", 0.5)
    store.end_job(job.id, JobState.DONE, {"answer": 42})
    store.end_job(job.id, JobState.FAILED, error={"kind": "late"})
    store.progress_job(job.id, "late", 0.1)
    ended = store.job(job.id)
    assert (ended.state, ended.result, ended.error) == (JobState.DONE, {"answer": 42}, None)
    assert store.jobs(open_only=True) == ()


def test_a_failed_write_leaves_no_half_of_itself(store: Store) -> None:
    with pytest.raises(RuntimeError, match="in the middle"), store.write() as tx:
        tx.log("half", {}, None)
        raise RuntimeError("in the middle")
    assert store.events() == ()


def test_a_full_database_is_an_error_that_says_so_and_passes_once_there_is_room(store: Store) -> None:
    pages = store.rows("PRAGMA page_count")[0]["page_count"]
    store.rows(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StoreError, match=r"full.*Free disk space"):
        for _ in range(200):
            store.add_event("big", "x" * 4000)
    store.rows("PRAGMA max_page_count = 1000000")
    store.add_event("after", {})
    assert store.events(limit=1000)[-1].kind == "after"


def test_a_long_write_ahead_log_is_folded_into_the_database(store: Store, tmp_path: Path) -> None:
    for _ in range(12):
        store.add_event("big", "x" * 1_000_000)
    assert (tmp_path / "hiera.db-wal").stat().st_size < 9 << 20
    assert len(store.events(limit=100)) == 12


def test_a_blob_is_stored_once_and_a_strange_name_is_refused(store: Store) -> None:
    assert store.put_blob(b"x") == store.put_blob(b"x")
    for name in ("../../etc/passwd", "A" * 64, "0" * 64, ""):
        with pytest.raises(NotFoundError):
            store.blob(name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_refused_clearly(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="HIERA_DATA_DIR"):
        Store.open(tmp_path / "no" / "hiera.db", tmp_path / "no" / "blobs")


def test_a_file_that_is_no_database_is_refused_clearly(tmp_path: Path) -> None:
    (tmp_path / "hiera.db").write_text("this is not a database, whatever its name says" * 50)
    with pytest.raises(StoreError, match="not a database"):
        Store.open(tmp_path / "hiera.db", tmp_path / "blobs")


def test_the_schema_knows_every_status(store: Store) -> None:
    with pytest.raises(sqlite3.IntegrityError), store.write() as tx:
        row = {"id": "e", "candidate_id": "none", "status": "fine", "reason": "", "evaluation": "{}", "at": ""}
        tx.insert("evaluations", row)
