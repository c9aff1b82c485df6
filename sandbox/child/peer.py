"""The judge's end of the socket to one runner. Everything that comes back is a claim, and checked as such."""

import contextlib
import os
import socket
import time
from typing import Any, cast

from hiera_mcp.sandbox.child.failure import CandidateFailure
from hiera_mcp.sandbox.child.gate import Gate
from hiera_mcp.sandbox.child.wire import Closed, Malformed, encode, receive, send, send_body

REPLY_BYTES = 4 << 20
"""The longest answer that is read."""
GRACE_S = 5.0
"""Added to every time limit: a busy host must not turn an answer into a timeout."""
AHEAD_BYTES = 1 << 16
"""A question up to this length fits into the socket of a runner that stands still."""


class RunnerLost(Exception):
    """The runner's socket closed, or spoke what is not in the protocol.

    Args:
        ended: whether it is the runner that ended, and not we who do not believe it.
    """

    def __init__(self, message: str, ended: bool = False) -> None:
        super().__init__(message)
        self.ended = ended


class RunnerTimeout(Exception):
    """The runner did not answer in time and still has its socket open."""


class Peer:
    """Asks one runner, one question at a time. Between the questions its box is held still, where a gate can do that."""

    def __init__(self, sock: socket.socket, gate: Gate | None = None) -> None:
        self._sock = sock
        self._gate = gate or Gate()
        self._hangs = False
        self._seconds = 0.0

    def ask(self, request: dict[str, Any], limit_s: float, fds: tuple[int, ...] = ()) -> dict[str, Any]:
        """Let the runner run, send a request and wait for its answer.

        Raises:
            CandidateFailure: the runner says that the candidate failed, or its processes do not stay stopped.
            RunnerLost: it ended, or answered nonsense.
            RunnerTimeout: no answer within `limit_s` seconds and some grace.
        """
        reply = self._exchange(encode(request), request["op"], limit_s, fds)
        self._gate.hold()
        return reply

    def left_running(self) -> str:
        """What the runner's box does while nothing is asked of it, in words; empty when it rests."""
        return self._gate.left_running()

    def _exchange(self, question: bytes, op: str, limit_s: float, fds: tuple[int, ...]) -> dict[str, Any]:
        self._refuse_unasked()
        self._sock.settimeout(limit_s + GRACE_S)
        try:
            reply, unasked = self._pose(question, fds)
        except Closed as e:
            raise RunnerLost("the runner ended", ended=True) from e
        except Malformed as e:
            raise RunnerLost(f"the runner answered what is not a message: {e}") from e
        except TimeoutError as e:
            self._hangs = True
            raise RunnerTimeout(f"no answer to `{op}` within {limit_s:g} s") from e
        if unasked:
            for fd in unasked:
                os.close(fd)
            raise RunnerLost("the runner sent descriptors")
        if reply.get("ok") is not True:
            raise CandidateFailure(str(reply.get("error", "the runner gave no reason"))[:4000])
        return reply

    def _pose(self, question: bytes, fds: tuple[int, ...]) -> tuple[dict[str, Any], tuple[int, ...]]:
        """The question lies there before the box is let go, and the clock starts with that: whatever runs in the box before it
        looks at the question (a handler of SIGCONT, a thread that wakes) runs on the time of the answer."""
        ahead = len(question) <= AHEAD_BYTES
        if not ahead:
            self._gate.release()
        start = time.perf_counter()
        send_body(self._sock, question, fds)
        if ahead:
            self._gate.let_go()
        try:
            answer = receive(self._sock, REPLY_BYTES)
            end = time.perf_counter()
        finally:
            start = (self._gate.let_go_at() if ahead else None) or start
        if end < start:
            raise CandidateFailure("the candidate answered before its box was let go: it ran while it was held still")
        self._seconds = end - start
        return answer

    def _refuse_unasked(self) -> None:
        """An answer that lies there before its question would be fast, and false."""
        self._sock.setblocking(False)
        try:
            waiting = self._sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError as e:
            raise RunnerLost("the runner ended", ended=True) from e
        raise RunnerLost(
            "the runner answered without being asked" if waiting else "the runner ended", ended=not waiting
        )

    @property
    def seconds(self) -> float:
        """What the last answer took, from the request on."""
        return self._seconds

    def numbers(
        self, request: dict[str, Any], key: str, count: int, limit_s: float, fds: tuple[int, ...] = ()
    ) -> tuple[list[int], float]:
        """Ask for a list of `count` integers that are not negative; also the seconds that the answer took."""
        return naturals(self.ask(request, limit_s, fds), request["op"], key, count), self._seconds

    def close(self) -> None:
        """Tell the runner to end, and wait a little until its socket is closed, so that shared memory may be freed."""
        with contextlib.suppress(Closed, Malformed, OSError):
            self._gate.release()
            self._sock.settimeout(0.2 if self._hangs else 5.0)
            send(self._sock, {"op": "quit"})
            receive(self._sock, REPLY_BYTES)
        self._sock.close()


def naturals(reply: dict[str, Any], op: str, key: str, count: int) -> list[int]:
    """The list of `count` integers that are not negative in the answer to `op`.

    Raises:
        RunnerLost: there is none.
    """
    values = reply.get(key)
    if not isinstance(values, list):
        raise RunnerLost(f"the runner answered `{op}` without `{key}`")
    numbers = cast("list[Any]", values)
    if len(numbers) != count or not all(is_natural(v) for v in numbers):
        raise RunnerLost(f"the runner answered `{op}` without {count} numbers in `{key}`")
    return numbers


def is_natural(value: Any) -> bool:
    """Whether a claim is an integer that is not negative, and of a size that arithmetic can bear."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62
