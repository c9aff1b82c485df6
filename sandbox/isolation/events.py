"""A pipe and a child process as sources of events of the running asyncio loop, without a thread."""

import asyncio
import os
import resource
from collections.abc import Callable

_READ_BYTES = 64 << 10


class PipeReader:
    """Feeds what arrives on a pipe to `sink`; owns the descriptor."""

    def __init__(self, fd: int, sink: Callable[[bytes], None]) -> None:
        self._fd = fd
        self._sink = sink
        self._open = True
        self._loop = asyncio.get_running_loop()
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._read)

    def finish(self) -> None:
        """Take what is left in the pipe, without waiting for more, and close it."""
        while self._open and self._read():
            pass
        self.close()

    def close(self) -> None:
        if self._open:
            self._open = False
            self._loop.remove_reader(self._fd)
            os.close(self._fd)

    def _read(self) -> bool:
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return False
        if data:
            self._sink(data)
        else:
            self.close()
        return bool(data)


def peak_of(spent: resource.struct_rusage) -> int:
    """Greatest resident set of an ended child in bytes; 0 where the kernel's figure says nothing.

    Until it executes its program a child counts with the memory of the process that started it, and the kernel keeps that
    peak (getrusage(2), ru_maxrss): a figure no greater than our own peak may be ours.
    """
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return spent.ru_maxrss * 1024 if spent.ru_maxrss > own else 0


class ChildExit:
    """Reaps one child as soon as it ends, then calls `ended`."""

    def __init__(self, pid: int, ended: Callable[[], None]) -> None:
        self.returncode: int | None = None
        """Negative for a signal; None while it runs."""
        self.peak_bytes = 0
        """Greatest resident set of it and of the children that it waited for."""
        self._pid = pid
        self._ended = ended
        self._fd = os.pidfd_open(pid)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self.poll)

    def poll(self) -> bool:
        """Reap the child if it has ended; returns whether it has."""
        if self.returncode is not None:
            return True
        pid, status, spent = os.wait4(self._pid, os.WNOHANG)
        if pid == 0:
            return False
        self.returncode = os.waitstatus_to_exitcode(status)
        self.peak_bytes = peak_of(spent)
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
        self._ended()
        return True
