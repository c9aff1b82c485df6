"""stdio, with an orderly end on EOF, signals and the death of the parent.

mcp 2.3 reads standard input in a worker thread that a cancellation cannot interrupt: after a signal
`run_stdio_async` never returns. So the server leaves through `os._exit` once everything it opened is closed.
"""

import logging
import os
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from hiera_mcp.deps import Deps, open_deps
from hiera_mcp.protocol.strict import StrictServer
from hiera_mcp.server import create_server
from hiera_mcp.serving.logs import log_to_stderr
from hiera_mcp.serving.stopping import Stop, exit_after, unwrapped, watch_signals
from hiera_mcp.settings import Settings

LAST_RESORT_S = 5.0
"""Claude Code kills a server 0.5 s after its first signal; other clients wait longer."""
PARENT_POLL_S = 1.0

log = logging.getLogger(__name__)


async def serve_stdio(settings: Settings) -> None:
    """Serve one client on standard input and output until EOF, SIGINT, SIGTERM, SIGHUP or the end of the parent.

    Leaves no process behind. Returns after EOF; after a signal the process ends with status 0.

    Raises:
        StoreError: the database cannot be opened.
    """
    log_to_stderr()
    parent = os.getppid()
    stopping = threading.Event()

    @asynccontextmanager
    async def parts() -> AsyncGenerator[Deps]:
        try:
            async with open_deps(settings) as deps:
                yield deps
        finally:
            if stopping.is_set():
                sys.stderr.flush()
                os._exit(0)

    with unwrapped():
        await _serve(create_server(parts), stopping, parent)


async def _serve(server: StrictServer, stopping: threading.Event, parent: int) -> None:
    async with anyio.create_task_group() as group:

        def stop(why: str) -> None:
            log.info("stopping: %s", why)
            stopping.set()
            exit_after(LAST_RESORT_S)
            group.cancel_scope.cancel()

        group.start_soon(watch_signals, stop)
        group.start_soon(_watch_parent, parent, stop)
        await server.run_stdio_async()
        group.cancel_scope.cancel()


async def _watch_parent(parent: int, stop: Stop) -> None:
    while os.getppid() == parent:
        await anyio.sleep(PARENT_POLL_S)
    stop("the parent process is gone")
