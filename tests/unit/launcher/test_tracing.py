"""What the tracer's end says about the reference, and what it does not."""

import subprocess
import sys
from pathlib import Path

import pytest

import hiera_mcp
from hiera_mcp.errors import ToolchainError
from hiera_mcp.model.work import TraceRequest
from hiera_mcp.sandbox.isolation.box import Outcome
from hiera_mcp.sandbox.launcher.tracing import read_trace


def test_without_torch_the_toolchain_is_to_blame_and_not_the_reference(tmp_path: Path):
    request = TraceRequest(source="import torch\n", name="any")
    (tmp_path / "request.json").write_text(request.model_dump_json())
    program = (sys.executable, "-P", "-S", "-m", "hiera_mcp.sandbox.child.tracer")  # -S: no site-packages, so no torch
    files = ("--request", str(tmp_path / "request.json"), "--result", str(tmp_path / "result.json"))
    environment = {"PYTHONPATH": str(Path(hiera_mcp.__file__).parent.parent)}
    subprocess.run([*program, *files], env=environment, check=True, timeout=60)
    outcome = Outcome("exit", 0, "", 0, 1.0)
    with pytest.raises(ToolchainError, match=r"No module named 'torch'.*pip install torch"):
        read_trace((tmp_path / "result.json").read_bytes(), outcome, request)
