"""The judge's end of the gate to a runner's box: outside the judge's own questions the box stands still.

The launcher, which alone sees the processes of both boxes, stops every process of the runner's box (SIGSTOP) and lets them
go again. It answers each request with `REPLY`.
"""

import socket
import struct
import time

from hiera_mcp.sandbox.child.failure import CandidateFailure

HOLD, RELEASE, LOOK = b"h", b"r", b"l"
REPLY = struct.Struct("<?QQ")
"""Whether the box stands still, or runs, as asked; nanoseconds: of processor time that its processes have had, or waited for, so far,
or where they were let go, when (of the monotonic clock, which all processes of a host share); and the number of the newest process."""

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
        still, used, _ = self._ask(HOLD)
        if not still:
            raise CandidateFailure(
                "work was left running: processes of the candidate wake each other when they are stopped"
            )
        return used

    def release(self) -> None:
        """Let them run."""
        self.let_go()
        self.let_go_at()

    def let_go(self) -> None:
        """Let them run, and do not wait for it; `let_go_at` must follow."""
        if self._sock is not None:
            self._sock.sendall(RELEASE)

    def let_go_at(self) -> float | None:
        """When they began to run, by time.perf_counter(); None where nobody knows."""
        told = self._answer()
        return told[1] if told else None

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
        """Processor time used in a while, and how long that was. Nobody is stopped in it, and so nobody woken.

        What ended meanwhile is known too coarsely: who starts processes has used all of the time.
        """
        (_, before, newest), start = self._ask(LOOK), time.perf_counter()
        time.sleep(IDLE_S)
        _, after, newest_after = self._ask(LOOK)
        seconds = time.perf_counter() - start
        return (after - before if newest_after == newest else max(seconds, after - before)), seconds

    def close(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def _ask(self, what: bytes) -> tuple[bool, float, int]:
        if self._sock is not None:
            self._sock.sendall(what)
        return self._answer() or (True, 0.0, 0)

    def _answer(self) -> tuple[bool, float, int] | None:
        """None where there is no launcher, or it has ended the box, which it says itself."""
        reply = self._sock.recv(REPLY.size, socket.MSG_WAITALL) if self._sock is not None else b""
        if len(reply) < REPLY.size:
            return None
        done, nanoseconds, newest = REPLY.unpack(reply)
        return done, nanoseconds / 1e9, newest
