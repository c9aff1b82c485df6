"""The judge's end of the runner's socket."""

import socket

import pytest

from hiera_mcp.sandbox.child.peer import Peer, RunnerLost
from hiera_mcp.sandbox.child.wire import send


def test_an_answer_that_lies_there_before_its_question_is_refused() -> None:
    judge, runner = socket.socketpair()
    send(runner, {"ok": True, "ns": [1]})
    with judge, runner, pytest.raises(RunnerLost, match="without being asked"):
        Peer(judge).ask({"op": "run"}, 1.0)


def test_a_runner_that_is_gone_is_lost() -> None:
    judge, runner = socket.socketpair()
    runner.close()
    with judge, pytest.raises(RunnerLost, match="ended"):
        Peer(judge).ask({"op": "run"}, 1.0)
