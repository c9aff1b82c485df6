"""What ends a server, and how it gets out."""

import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

import anyio

from hiera_mcp.errors import HieraError

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

Stop = Callable[[str], None]
"""Called once, with what happened."""


async def watch_signals(stop: Stop) -> None:
    """Call `stop` at the first signal, and ignore all that follow.

    Clients send several in a row (Claude Code: SIGINT, 0.1 s later SIGTERM); the second must not kill the clean-up.
    """
    name = ""
    with anyio.open_signal_receiver(*SIGNALS) as signals:
        async for number in signals:
            name = number.name
            break
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    stop(name)


def exit_after(seconds: float) -> None:
    """End the process then, if it is still there: the last resort of a clean-up that hangs."""
    timer = threading.Timer(seconds, os._exit, (1,))
    timer.daemon = True
    timer.start()


@contextmanager
def unwrapped() -> Generator[None]:
    """Raise the HieraError that task groups wrapped, as itself."""
    try:
        yield
    except BaseExceptionGroup as group:
        ours = group.subgroup(HieraError)
        if ours is None:
            raise
        raise _leaf(ours) from None


def _leaf(group: BaseExceptionGroup[HieraError]) -> HieraError:
    first = group.exceptions[0]
    return _leaf(first) if isinstance(first, BaseExceptionGroup) else first
