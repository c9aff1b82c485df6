"""What every tool and resource receives, and how it is opened and closed."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import anyio.to_thread

from hiera_mcp.database import Database
from hiera_mcp.jobs import Jobs, open_jobs
from hiera_mcp.knowledge_base.index import KnowledgeBase
from hiera_mcp.sandbox.executor import Executor
from hiera_mcp.sandbox.local import LocalExecutor
from hiera_mcp.settings import Settings
from hiera_mcp.store import Store


@dataclass(frozen=True)
class Deps:
    """The parts of a running server."""

    settings: Settings
    database: Database
    """The store, off the event loop: `await deps.database(lambda s: s.run(run_id))`."""
    executor: Executor
    knowledge: KnowledgeBase
    jobs: Jobs


@asynccontextmanager
async def open_deps(settings: Settings, executor: Executor | None = None) -> AsyncGenerator[Deps]:
    """The parts of a server for as long as the context lasts; without an `executor` the local one.

    Leaving stops the jobs first, then the executor, then closes the database.

    Raises:
        StoreError: the database cannot be opened.
    """
    store = await anyio.to_thread.run_sync(Store.open, settings.database, settings.blobs)
    executor = executor or LocalExecutor(unsafe=settings.unsafe_no_sandbox, cache_dir=settings.cache_dir)
    try:
        knowledge = await anyio.to_thread.run_sync(KnowledgeBase.load, settings.knowledge_dir)
        database = Database(store)
        async with open_jobs(database) as jobs:
            yield Deps(settings, database, executor, knowledge, jobs)
    finally:
        with anyio.CancelScope(shield=True):
            await executor.close()
        store.close()
