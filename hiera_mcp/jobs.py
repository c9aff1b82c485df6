"""Long work that outlives the call that started it.

A job is a row in the store and, in the server that runs it, a task of the lifespan's task group. Cancelling or losing
a call that waits leaves the job running; `cancel` and the end of the server stop it. A result is stored before
anybody is told that the job is done.
"""

import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import cast

import anyio
import anyio.abc
from pydantic import JsonValue

from hiera_mcp.database import Database
from hiera_mcp.errors import HieraError, LostError, RequestError, StoreError
from hiera_mcp.model.run import Job, JobState
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.store import Store
from hiera_mcp.store.jobs import JobKind

Subjects = Sequence[str]
"""Ids of what a job is about: candidates, for an evaluation."""
Work = Callable[[Notify, Subjects], Awaitable[JsonValue]]
"""The work of a job: reports through its first argument, returns what is stored as the job's result."""
Admit = Callable[[Store, Mapping[str, str]], Subjects]
"""Checks a request and books its subjects; gets the subjects that are being worked on, each with its job."""
Tell = Callable[[Job], Awaitable[None]]
"""Receives a job whenever it changed, and at least every PULSE_S seconds."""

PULSE_S = 5.0
POLL_S = 1.0
"""How often a job that another server runs is looked up."""
RETRY_S = 2.0
"""How often the end of a job that could not be stored is tried again."""
SAVE_S = 0.5
"""Progress is written to the store at most this often; the waiting call hears all of it."""

log = logging.getLogger(__name__)


def _admit_all(_store: Store, _busy: Mapping[str, str]) -> Subjects:
    return ()


@dataclass
class _Running:
    """What this server knows of a job that it runs."""

    subjects: frozenset[str]
    message: str = "queued"
    progress: float | None = None
    saved_at: float = 0.0
    unsaved: StoreError | None = None
    """Why its end could not be stored yet."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)
    changed: anyio.Event = field(default_factory=anyio.Event)

    def note(self, message: str, progress: float | None) -> None:
        self.message, self.progress = message, progress
        self.changed.set()
        self.changed = anyio.Event()


class Jobs:
    """Starts, watches and stops jobs. Made by `open_jobs`, which owns the task group."""

    def __init__(self, group: anyio.abc.TaskGroup, database: Database) -> None:
        self._group = group
        self._database = database
        self._admission = anyio.Lock()
        self._running: dict[str, _Running] = {}

    async def submit(
        self,
        kind: JobKind,
        work: Work,
        *,
        run_id: str | None = None,
        request: JsonValue = None,
        key: str | None = None,
        admit: Admit = _admit_all,
    ) -> Job:
        """Queue `work` and return its job.

        With a `key` that was used before, the earlier job is returned while it is open or when it is done; one that
        failed, was cancelled or interrupted is started anew. `admit` checks and books what the work is about; when it
        refuses, the job is recorded as failed.

        Raises:
            HieraError: what `admit` raised.
        """
        async with self._admission:
            busy = {subject: job_id for job_id, r in self._running.items() for subject in r.subjects}
            # The thread of the database is not abandoned when the call is cancelled, so row and task stay together.
            job, subjects = await self._database(lambda s: _book(s, kind, run_id, request, key, admit, busy))
            if subjects is not None:
                running = self._running[job.id] = _Running(frozenset(subjects))
                self._group.start_soon(self._run, job.id, work, subjects, running)
        return job

    async def get(self, job_id: str) -> Job:
        """The job as it stands, with the newest progress."""
        job = await self._database(lambda s: s.job(job_id))
        running = self._running.get(job_id)
        if job.state.ended:
            return job
        if running is None:
            return await self._database(lambda s: _of_another_server(s, job_id))
        if running.unsaved:
            return job.model_copy(update={"state": JobState.FAILED, "error": running.unsaved.as_dict()})
        return job.model_copy(update={"message": running.message, "progress": running.progress})

    async def wait(self, job_id: str, seconds: float, tell: Tell) -> Job:
        """The job once it has ended, or as it stands after `seconds`."""
        deadline = time.monotonic() + seconds
        job = await self.get(job_id)
        while not job.state.ended and (left := deadline - time.monotonic()) > 0:
            await self._pause(job_id, left)
            job = await self.get(job_id)
            await tell(job)
        return job

    async def _pause(self, job_id: str, left: float) -> None:
        """Until the job changes, or a while has passed."""
        running = self._running.get(job_id)
        if running is None:
            await anyio.sleep(min(POLL_S, left))
            return
        with anyio.move_on_after(min(PULSE_S, left)):
            await running.changed.wait()

    async def cancel(self, job_id: str) -> Job:
        """Stop a job and wait until nothing of it runs. Harmless when it has ended.

        Raises:
            RequestError: another server runs it.
        """
        job = await self.get(job_id)
        running = self._running.get(job_id)
        if job.state.ended:
            return job
        if running is None:
            raise RequestError(
                f"Job {job_id} is run by another server on the same database.",
                todo="Cancel it there, or stop that server.",
            )
        running.scope.cancel()
        while not (running.ended.is_set() or running.unsaved):
            with anyio.move_on_after(POLL_S):
                await running.ended.wait()
        return await self.get(job_id)

    async def _run(self, job_id: str, work: Work, subjects: Subjects, running: _Running) -> None:
        try:
            end = _End(JobState.CANCELLED)
            with running.scope:
                end = await self._attempt(job_id, work, subjects, running)
            await self._end(job_id, end, running)
        except anyio.get_cancelled_exc_class():
            await self._store_end(job_id, _End(JobState.INTERRUPTED, error=_stopped()))
            raise
        finally:
            del self._running[job_id]
            running.ended.set()
            running.changed.set()

    async def _attempt(self, job_id: str, work: Work, subjects: Subjects, running: _Running) -> "_End":
        async def notify(message: str, progress: float | None) -> None:
            running.note(message, progress)
            if time.monotonic() - running.saved_at >= SAVE_S:
                running.saved_at = time.monotonic()
                await self._save_progress(job_id, message, progress)

        try:
            await self._database(lambda s: s.start_job(job_id))
            running.note("started", None)
            return _End(JobState.DONE, result=await work(notify, subjects))
        except HieraError as error:
            return _End(JobState.FAILED, error=error)
        except Exception as error:
            log.exception("job %s ended by a fault of ours", job_id)
            return _End(JobState.FAILED, error=fault_of_ours(error))

    async def _save_progress(self, job_id: str, message: str, progress: float | None) -> None:
        try:
            await self._database(lambda s: s.progress_job(job_id, message, progress))
        except StoreError as error:  # the work goes on; whether its result can be stored is seen at its end
            log.warning("progress of job %s is not stored: %s", job_id, error)

    async def _end(self, job_id: str, end: "_End", running: _Running) -> None:
        """Store how the job ended. While that fails, whoever waits for it is told so, and it is tried again."""
        while problem := await self._store_end(job_id, end):
            end = _End(JobState.FAILED, error=problem)
            running.unsaved = problem
            running.note("its end could not be stored", None)
            await anyio.sleep(RETRY_S)

    async def _store_end(self, job_id: str, end: "_End") -> StoreError | None:
        """What prevented storing it, also while the server is being stopped; None when it is stored."""
        data = cast(JsonValue, end.error.as_dict()) if end.error else None
        problem: StoreError | None = None
        with anyio.CancelScope(shield=True):
            try:
                await self._database(lambda s: s.end_job(job_id, end.state, end.result, data))
            except StoreError as error:
                log.error("the end of job %s is not stored: %s", job_id, error)
                problem = error
        return problem


@dataclass(frozen=True)
class _End:
    """How a job ended."""

    state: JobState
    result: JsonValue = None
    error: HieraError | None = None


def _of_another_server(store: Store, job_id: str) -> Job:
    store.mark_interrupted()
    return store.job(job_id)


def _book(
    store: Store,
    kind: JobKind,
    run_id: str | None,
    request: JsonValue,
    key: str | None,
    admit: Admit,
    busy: Mapping[str, str],
) -> tuple[Job, Subjects | None]:
    """A new job with its subjects, or the earlier job of that key with None."""
    job, created = _row(store, kind, run_id, request, key)
    if not created:
        return job, None
    try:
        return job, admit(store, busy)
    except Exception as error:
        known = error if isinstance(error, HieraError) else fault_of_ours(error)
        store.end_job(job.id, JobState.FAILED, error=cast(JsonValue, known.as_dict()))
        raise


def _row(store: Store, kind: JobKind, run_id: str | None, request: JsonValue, key: str | None) -> tuple[Job, bool]:
    for attempt in count(1):
        full_key = f"{kind}/{run_id or ''}/{key}/{attempt}" if key else None
        job, created = store.add_job(kind, run_id, request, full_key)
        if created or job.state is JobState.DONE or not job.state.ended:
            return job, created
    raise AssertionError("count() does not end")


def _stopped() -> LostError:
    return LostError("The server was stopped while the job ran.", todo="Submit the work again.")


def fault_of_ours(error: Exception) -> LostError:
    """What the agent is told of an exception that nobody expected; the log has its text."""
    what = f"The work ended because of a fault in the server ({type(error).__name__}), not in your request."
    return LostError(what, todo="The server's log has the details. Submit the work again once.")


@asynccontextmanager
async def open_jobs(database: Database) -> AsyncGenerator[Jobs]:
    """Jobs for as long as the context lasts; leaving it stops what still runs and marks it interrupted."""
    async with anyio.create_task_group() as group:
        try:
            yield Jobs(group, database)
        finally:
            group.cancel_scope.cancel()
