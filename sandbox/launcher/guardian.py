"""The launcher's parent: it outlives the launcher, so that nothing is left even of one that was ended by SIGKILL.

A box dies with its launcher by itself once it is complete, but not while it is being made: bwrap binds the init of a new
namespace to its parent's life last of all, so that a launcher killed in those milliseconds would leave a box for ever. As a
subreaper this process inherits whatever the launcher leaves, kills it, and removes its work folders.
"""

import os
import signal
import tempfile
from pathlib import Path
from types import FrameType
from typing import NoReturn

from hiera_mcp.sandbox.child.prctl import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, prctl
from hiera_mcp.sandbox.child.tree import end_descendants, wait_for
from hiera_mcp.sandbox.launcher.work import remove_stale

GRACE_S = 1.0
"""So long may the launcher take to end by itself once the server is gone."""
STUCK_S = 5.0
"""What does not react to SIGKILL for so long is stuck in the kernel or in a driver, and left alone."""


def stay_behind(channel_fd: int) -> None:
    """Fork. Returns in the child only, which is to be the launcher; this process guards it and ends after it.

    SIGTERM makes it kill the launcher and all below at once. It comes to the launcher itself, which ends its work then,
    when this process is killed: whoever wants to leave something behind has to kill both.

    Args:
        channel_fd: the launcher's channel to the server, which must not be held open here.
    """
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    guardian, launcher = os.getpid(), os.fork()
    if launcher:
        os.close(channel_fd)
        _guard(launcher)
    os.setsid()  # a signal to one process group does not reach both
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != guardian:
        os._exit(1)


def _guard(launcher: int) -> NoReturn:
    _end_with_the_server(os.pidfd_open(launcher))
    wait_for(launcher)
    end_descendants(STUCK_S)
    remove_stale(Path(tempfile.gettempdir()))
    os._exit(0)


def _end_with_the_server(launcher_fd: int) -> None:
    def end(_number: int, _frame: FrameType | None) -> None:
        try:
            signal.pidfd_send_signal(launcher_fd, signal.SIGKILL)
        except ProcessLookupError:
            return  # it has ended, and all below it is being killed already

    def end_soon(_number: int, _frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, GRACE_S)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGALRM, end)
    signal.signal(signal.SIGHUP, end_soon)
    prctl(PR_SET_PDEATHSIG, signal.SIGHUP)
