"""Runners of the sandbox that are forked from a process which has imported torch: that import takes longer than what most
candidates do. Each is a process of its own and runs the sandbox's own program.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import hiera_mcp
from hiera_mcp.sandbox.child.wire import Closed, receive, send


class WarmRunners:
    """Starts runners for the processor."""

    def __init__(self) -> None:
        self._sock, theirs = socket.socketpair()
        argv = [sys.executable, "-P", __file__, str(theirs.fileno())]
        threads = {
            "OMP_WAIT_POLICY": "passive",
            "OMP_NUM_THREADS": str(len(os.sched_getaffinity(0))),
        }  # as the runner has
        env = {**threads, **os.environ, "PYTHONPATH": str(Path(hiera_mcp.__file__).parents[1])}
        with theirs:
            self._process = subprocess.Popen(argv, env=env, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL)

    def start(self, box: Path) -> tuple[int, socket.socket]:
        """A runner whose folder is `box`: its number, and the judge's end of its channel."""
        ours, theirs = socket.socketpair()
        with theirs:
            send(self._sock, {"box": str(box)}, (theirs.fileno(),))
        answer, _ = receive(self._sock)
        return answer["pid"], ours

    def end(self, pid: int) -> None:
        """Kill it, and wait until it is gone."""
        send(self._sock, {"end": pid})
        receive(self._sock)

    def close(self) -> None:
        self._sock.close()
        assert self._process.wait(timeout=20) == 0


def main(sock: socket.socket) -> None:
    """Start and end runners until nobody asks any more."""
    import torch  # noqa: F401  # pyright: ignore[reportUnusedImport]

    from hiera_mcp.sandbox.child import host_platform, python_candidate, runner  # noqa: F401  # pyright: ignore[reportUnusedImport]

    with contextlib.suppress(Closed):
        while True:
            order, fds = receive(sock)
            if "end" in order:
                os.kill(order["end"], signal.SIGKILL)
                os.waitpid(order["end"], 0)
                send(sock, {})
                continue
            pid = os.fork()
            if pid == 0:
                sock.close()
                os.chdir(order["box"])
                sys.argv = ["runner", "--fd", str(fds[0]), "--device", "cpu", "--box", order["box"]]
                return runner.main()
            os.close(fds[0])
            send(sock, {"pid": pid})


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
