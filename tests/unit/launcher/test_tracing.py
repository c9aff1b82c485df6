"""What the tracer's end says about the reference, and what it does not."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

import hiera_mcp
from hiera_mcp.errors import SandboxError, ToolchainError
from hiera_mcp.model.work import TraceRequest
from hiera_mcp.sandbox.child import wire
from hiera_mcp.sandbox.launcher.tracing import read_trace


def test_without_torch_the_toolchain_is_to_blame_and_not_the_reference(tmp_path: Path):
    ours, theirs = socket.socketpair()
    fd = str(theirs.fileno())
    program = (sys.executable, "-P", "-S", "-m", "hiera_mcp.sandbox.child.tracer", "--fd", fd)  # -S: without torch
    environment = {"PYTHONPATH": str(Path(hiera_mcp.__file__).parents[1]), "HIERA_BOX": str(tmp_path)}
    environment |= {"TMPDIR": str(tmp_path)}
    with ours, subprocess.Popen(program, env=environment, pass_fds=(theirs.fileno(),)):
        theirs.close()
        ours.settimeout(60)
        assert wire.receive(ours)[0] == {"event": "ready"}
        wire.send(ours, {"request": TraceRequest(source="import torch\n", name="any").model_dump(mode="json")})
        answer, _ = wire.receive(ours)
        ours.shutdown(socket.SHUT_RDWR)
    with pytest.raises(ToolchainError, match=r"No module named 'torch'.*pip install torch"):
        read_trace(answer)


@pytest.mark.parametrize("answer", [{}, {"error": 3}, {"trace": {"case": 1}}])
def test_an_answer_that_is_none_is_a_fault_of_the_sandbox(answer: dict[str, object]):
    with pytest.raises(SandboxError, match="cannot be read"):
        read_trace(answer)
