"""The judge's end of the gate to a runner's box: outside the judge's own questions the box stands still.

The launcher, which alone sees the processes of both boxes, stops every process of the runner's box (SIGSTOP) and lets them
go again. It answers each request with `REPLY`.
"""

import socket
import struct
import time

from hiera_mcp.sandbox.child.failure import CandidateFailure

HOLD, RELEASE, LOOK = b"h", b"r", b"l"
REPLY = struct.Struct("<?Q")
"""Whether the box stands still, or runs, as asked; nanoseconds of processor time that its processes have had, or waited for, so far."""

SETTLE_S, IDLE_S, WINDOWS = 0.01, 0.02, 10
"""A look lasts `IDLE_S`, after a while in which whoever has just been woken comes to rest. One look at rest is enough; there are
so many because the pools of BLAS and OpenMP libraries spin before they sleep: 25 ms in OpenBLAS, 200 ms in Intel's OpenMP."""
BUSY = 0.1
"""A box is busy when it uses this share of one processor while nothing is asked of it."""


class Gate:
    """Holds one runner's box still and lets it go.

    Args:
        sock: the channel to the launcher; None where nobody can hold the box (a runner started without a launcher).
    """

    def __init__(self, sock: socket.socket | None = None) -> None:
        self._sock = sock

    def hold(self) -> float:
        """Stop all processes of the box; the seconds of processor time that they have used so far.

        Raises:
            CandidateFailure: they do not stay stopped.
        """
        still, used = self._ask(HOLD)
        if not still:
            raise CandidateFailure(
                "work was left running: processes of the candidate wake each other when they are stopped"
            )
        return used

    def release(self) -> None:
        """Let them run."""
        self._ask(RELEASE)

    def left_running(self) -> str:
        """What the box does while nothing is asked of it, in words; empty when it rests. It is held afterwards."""
        if self._sock is None:
            return ""
        self.release()
        time.sleep(SETTLE_S)
        used, seconds = self._look()
        for _ in range(WINDOWS - 1):
            if used >= BUSY * seconds:
                used, seconds = self._look()
        self.hold()
        if used < BUSY * seconds:
            return ""
        return (
            f"work was left running: between the calls the candidate's processes used {used * 1e3:.3g} ms of processor "
            f"time in {seconds * 1e3:.3g} ms"
        )

    def _look(self) -> tuple[float, float]:
        """Processor time used in a while, and how long that was. Nobody is stopped in it, and so nobody woken."""
        before, start = self._ask(LOOK)[1], time.perf_counter()
        time.sleep(IDLE_S)
        return self._ask(LOOK)[1] - before, time.perf_counter() - start

    def close(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def _ask(self, what: bytes) -> tuple[bool, float]:
        if self._sock is None:
            return True, 0.0
        self._sock.sendall(what)
        reply = self._sock.recv(REPLY.size, socket.MSG_WAITALL)
        if len(reply) < REPLY.size:
            return True, 0.0  # the launcher has ended the box, and says so itself
        done, used = REPLY.unpack(reply)
        return done, used / 1e9
