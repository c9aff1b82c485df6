"""Jobs: long work that outlives the call that asked for it."""

import json
from typing import Literal

from pydantic import JsonValue

from hiera_mcp.errors import RequestError
from hiera_mcp.model.run import Job, JobState
from hiera_mcp.store.database import Connection, Row, new_id, now

JobKind = Literal["contract_build", "check", "evaluate", "profile", "sanitize"]


class Jobs(Connection):
    """Queries about jobs. Each job belongs to the server that `owner` names."""

    owner: str = ""

    def add_job(
        self, kind: JobKind, run_id: str | None, request: JsonValue, idempotency_key: str | None = None
    ) -> tuple[Job, bool]:
        """Queue a job. Returns the job, and False when the key names an earlier one, which is then returned.

        Raises:
            RequestError: the key was used for another request.
        """
        job_id = new_id("j")
        with self.write() as tx:
            if idempotency_key is not None:
                earlier = tx.rows("SELECT * FROM jobs WHERE idempotency_key = ?", [idempotency_key])
                if earlier:
                    _check_same(earlier[0], request)
                    return _job(earlier[0]), False
            row = {"id": job_id, "kind": kind, "state": "queued", "run_id": run_id, "owner": self.owner}
            rest = {"idempotency_key": idempotency_key, "request": json.dumps(request), "message": "queued"}
            tx.insert("jobs", {**row, **rest, "created_at": now()})
            tx.log("job_queued", {"job_id": job_id, "kind": kind}, run_id)
        return self.job(job_id), True

    def start_job(self, job_id: str) -> None:
        """Mark a queued job as running."""
        sql = "UPDATE jobs SET state = 'running', started_at = ?, message = 'running' WHERE id = ? AND state = 'queued'"
        with self.write() as tx:
            tx.execute(sql, [now(), job_id])

    def progress_job(self, job_id: str, message: str, progress: float | None) -> None:
        """Say how far a running job is."""
        sql = "UPDATE jobs SET message = ?, progress = ? WHERE id = ? AND state IN ('queued', 'running')"
        with self.write() as tx:
            tx.execute(sql, [message, progress, job_id])

    def end_job(self, job_id: str, state: JobState, result: JsonValue = None, error: JsonValue = None) -> Job:
        """End a job. A job that has ended already is left as it is."""
        job = self.job(job_id)
        sql = """UPDATE jobs SET state = ?1, result = ?2, error = ?3, ended_at = ?4, message = ?1,
            progress = CASE ?1 WHEN 'done' THEN 1.0 ELSE progress END
            WHERE id = ?5 AND state IN ('queued', 'running')"""
        values = [state.value, json.dumps(result), json.dumps(error), now(), job_id]
        with self.write() as tx:
            if tx.execute(sql, values):
                tx.log("job_ended", {"job_id": job_id, "state": state.value}, job.run_id)
        return self.job(job_id)

    def job(self, job_id: str) -> Job:
        """The job with this id; NotFoundError when there is none."""
        return _job(self.one("jobs", job_id, "job"))

    def jobs(self, run_id: str | None = None, open_only: bool = False, limit: int = 50) -> tuple[Job, ...]:
        """The newest jobs, the newest first."""
        where, values = ["1"], list[object]()
        if run_id is not None:
            where.append("run_id = ?")
            values.append(run_id)
        if open_only:
            where.append("state IN ('queued', 'running')")
        sql = f"SELECT * FROM jobs WHERE {' AND '.join(where)} ORDER BY rowid DESC LIMIT ?"
        return tuple(_job(row) for row in self.rows(sql, [*values, limit]))


def _check_same(earlier: Row, request: JsonValue) -> None:
    if json.loads(earlier["request"]) != request:
        raise RequestError(
            f"The idempotency key was used for another submission (job {earlier['id']}).",
            todo="Send the same arguments again, or use another key.",
        )


def _job(row: Row) -> Job:
    fields = ("id", "kind", "state", "run_id", "message", "progress", "created_at", "started_at", "ended_at")
    parsed = {name: json.loads(row[name]) if row[name] is not None else None for name in ("result", "error")}
    return Job.model_validate({f: row[f] for f in fields} | parsed)
