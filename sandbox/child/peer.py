"""The judge's end of the socket to one runner. Everything that comes back is a claim, and checked as such."""

import contextlib
import socket
import time
from typing import Any, cast

from hiera_mcp.sandbox.child.failure import CandidateFailure
from hiera_mcp.sandbox.child.wire import Closed, Malformed, receive, send

REPLY_BYTES = 4 << 20
"""The longest answer that is read."""
GRACE_S = 5.0
"""Added to every time limit: a busy host must not turn an answer into a timeout."""


class RunnerLost(Exception):
    """The runner's socket closed, or spoke what is not in the protocol."""


class RunnerTimeout(Exception):
    """The runner did not answer in time and still has its socket open."""


class Peer:
    """Asks one runner, one question at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._hangs = False

    def ask(self, request: dict[str, Any], limit_s: float, fds: tuple[int, ...] = ()) -> dict[str, Any]:
        """Send a request and wait for its answer.

        Raises:
            CandidateFailure: the runner says that the candidate failed.
            RunnerLost: it ended, or answered nonsense.
            RunnerTimeout: no answer within `limit_s` seconds and some grace.
        """
        self._refuse_unasked()
        self._sock.settimeout(limit_s + GRACE_S)
        try:
            send(self._sock, request, fds)
            reply, unasked = receive(self._sock, REPLY_BYTES)
        except Closed as e:
            raise RunnerLost("the runner ended") from e
        except Malformed as e:
            raise RunnerLost(f"the runner answered what is not a message: {e}") from e
        except TimeoutError as e:
            self._hangs = True
            raise RunnerTimeout(f"no answer to `{request['op']}` within {limit_s:g} s") from e
        if unasked:
            raise RunnerLost("the runner sent descriptors")
        if reply.get("ok") is not True:
            raise CandidateFailure(str(reply.get("error", "the runner gave no reason"))[:4000])
        return reply

    def _refuse_unasked(self) -> None:
        """An answer that lies there before its question would be fast, and false."""
        self._sock.setblocking(False)
        try:
            waiting = self._sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError as e:
            raise RunnerLost("the runner ended") from e
        raise RunnerLost("the runner answered without being asked" if waiting else "the runner ended")

    def numbers(self, request: dict[str, Any], key: str, count: int, limit_s: float) -> tuple[list[int], float]:
        """Ask for a list of `count` integers that are not negative; also the seconds that the answer took."""
        start = time.perf_counter()
        reply = self.ask(request, limit_s)
        seconds = time.perf_counter() - start
        values = reply.get(key)
        if not isinstance(values, list):
            raise RunnerLost(f"the runner answered `{request['op']}` without `{key}`")
        numbers = cast("list[Any]", values)
        if len(numbers) != count or not all(is_natural(v) for v in numbers):
            raise RunnerLost(f"the runner answered `{request['op']}` without {count} numbers in `{key}`")
        return numbers, seconds

    def close(self) -> None:
        """Tell the runner to end, and wait a little until its socket is closed, so that shared memory may be freed."""
        with contextlib.suppress(Closed, Malformed, OSError):
            self._sock.settimeout(0.2 if self._hangs else 5.0)
            send(self._sock, {"op": "quit"})
            receive(self._sock, REPLY_BYTES)
        self._sock.close()


def is_natural(value: Any) -> bool:
    """Whether a claim is an integer that is not negative, and of a size that arithmetic can bear."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62
