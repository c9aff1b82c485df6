"""A limit on processor time that ends Python code of others between two of its instructions."""

import contextlib
import signal
from collections.abc import Generator
from types import FrameType


class OutOfTime(BaseException):
    """Not an Exception: code that catches all of those does not catch this."""


@contextlib.contextmanager
def at_most(seconds: float) -> Generator[None]:
    """Let the block take so much processor time, of all threads together. For the main thread; not to be nested.

    Raises:
        OutOfTime: in the block, when it took more.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
