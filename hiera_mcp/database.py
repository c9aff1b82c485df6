"""The store, off the event loop."""

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from hiera_mcp.store import Store

T = TypeVar("T")


class Database:
    """One call at a time, on a worker thread of its own limiter: the SDK's stdio reader shares the default one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._limiter = anyio.CapacityLimiter(1)

    async def __call__(self, use: Callable[[Store], T]) -> T:
        """The result of `use(store)`. A cancelled caller still waits for it: a write is never left half done."""
        return await anyio.to_thread.run_sync(use, self._store, limiter=self._limiter)

    async def glance(self, use: Callable[[Store], T]) -> T:
        """The result of a read that is shorter than the way to a thread: at once, unless the store is in use."""
        with self._store.if_free() as free:
            if free:
                return use(self._store)
        return await self(use)
