"""Long work that outlives the call that started it.

A job is a row in the store and, in the server that runs it, a task of the lifespan's task group. Cancelling or losing
a call that waits leaves the job running; `cancel` and the end of the server stop it. A result is stored before
anybody is told that the job is done.
"""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar, cast

import anyio
import anyio.abc
import anyio.to_thread
from pydantic import JsonValue

from hiera_mcp.errors import HieraError, LostError, RequestError
from hiera_mcp.model.run import Job, JobState
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.store import Store
from hiera_mcp.store.jobs import JobKind

T = TypeVar("T")
Work = Callable[[Notify], Awaitable[JsonValue]]
"""The work of a job: reports through its argument, returns what is stored as the job's result."""
Tell = Callable[[Job], Awaitable[None]]
"""Receives a job whenever it changed, and at least every PULSE_S seconds."""

PULSE_S = 5.0
POLL_S = 1.0
"""How often a job that another server runs is looked up."""
SAVE_S = 0.5
"""Progress is written to the store at most this often; the waiting call hears all of it."""

log = logging.getLogger(__name__)


class Database:
    """The store, off the event loop: one call at a time, on a worker thread of its own limiter."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._limiter = anyio.CapacityLimiter(1)

    async def __call__(self, use: Callable[[Store], T]) -> T:
        """The result of `use(store)`. A cancelled caller still waits for it: a write is never left half done."""
        return await anyio.to_thread.run_sync(use, self._store, limiter=self._limiter)


@dataclass
class _Running:
    """What this server knows of a job that it runs."""

    subjects: frozenset[str]
    message: str = "queued"
    progress: float | None = None
    saved_at: float = 0.0
    user_cancelled: bool = False
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
        self._running: dict[str, _Running] = {}

    async def submit(
        self,
        kind: JobKind,
        work: Work,
        *,
        run_id: str | None = None,
        request: JsonValue = None,
        key: str | None = None,
        subjects: Sequence[str] = (),
    ) -> Job:
        """Queue `work` and return its job; with a `key` that was used before, return the earlier job instead.

        `subjects` are the ids that the work is about; see `working_on`.
        """
        with anyio.CancelScope(shield=True):  # a row without its task would wait for ever
            job, created = await self._database(lambda s: s.add_job(kind, run_id, request, key))
            if created:
                running = self._running[job.id] = _Running(frozenset(subjects))
                self._group.start_soon(self._run, job.id, work, running)
        return job

    def working_on(self, subject: str) -> str | None:
        """The id of the job of this server that is about `subject`, if there is one."""
        return next((job_id for job_id, running in self._running.items() if subject in running.subjects), None)

    async def get(self, job_id: str) -> Job:
        """The job as it stands, with the newest progress."""
        job = await self._database(lambda s: s.job(job_id))
        running = self._running.get(job_id)
        if running is None or job.state.ended:
            return job
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
        running.user_cancelled = True
        running.scope.cancel()
        await running.ended.wait()
        return await self.get(job_id)

    async def _run(self, job_id: str, work: Work, running: _Running) -> None:
        try:
            with running.scope:
                await self._attempt(job_id, work, running)
            if running.scope.cancelled_caught:
                await self._end(job_id, JobState.CANCELLED)
        except anyio.get_cancelled_exc_class():
            await self._end(job_id, JobState.INTERRUPTED, error=_stopped())
            raise
        finally:
            del self._running[job_id]
            running.ended.set()
            running.changed.set()

    async def _attempt(self, job_id: str, work: Work, running: _Running) -> None:
        async def notify(message: str, progress: float | None) -> None:
            running.note(message, progress)
            if time.monotonic() - running.saved_at >= SAVE_S:
                running.saved_at = time.monotonic()
                await self._database(lambda s: s.progress_job(job_id, message, progress))

        try:
            await self._database(lambda s: s.start_job(job_id))
            running.note("started", None)
            result = await work(notify)
        except HieraError as error:
            await self._end(job_id, JobState.FAILED, error=error)
        except Exception as error:
            log.exception("job %s ended by a fault of ours", job_id)
            await self._end(job_id, JobState.FAILED, error=_fault(error))
        else:
            await self._end(job_id, JobState.DONE, result=result)

    async def _end(
        self, job_id: str, state: JobState, *, result: JsonValue = None, error: HieraError | None = None
    ) -> None:
        """Store how the job ended, also while the server is being stopped."""
        with anyio.CancelScope(shield=True):
            data = cast(JsonValue, error.as_dict()) if error else None
            await self._database(lambda s: s.end_job(job_id, state, result, data))


def _stopped() -> LostError:
    return LostError("The server was stopped while the job ran.", todo="Submit the work again.")


def _fault(error: Exception) -> LostError:
    what = f"The job ended because of a fault in the server ({type(error).__name__}), not in your request."
    return LostError(what, todo="The server's log has the details. Submit the work again once.")


@asynccontextmanager
async def open_jobs(database: Database) -> AsyncIterator[Jobs]:
    """Jobs for as long as the context lasts; leaving it stops what still runs and marks it interrupted."""
    async with anyio.create_task_group() as group:
        try:
            yield Jobs(group, database)
        finally:
            group.cancel_scope.cancel()
