"""Contracts to test with: one made by hand, and any task text, traced by the real tracer."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

import hiera_mcp
from hiera_mcp.contracts.build import build_contract, cpu_peaks
from hiera_mcp.errors import HieraError, error_from_dict
from hiera_mcp.model.contract import Contract, Precision, Task
from hiera_mcp.model.work import HostRates, Trace, TraceRequest

HERE = Path(__file__).parent
HOST = HostRates(bandwidth=((1 << 20, 2e10), (1 << 24, 1e10)), flops={"fp32": 1e11, "fp64": 5e10})
"""A host to build contracts for."""


@pytest.fixture
def host_rates() -> HostRates:
    return HOST


SERVE = """
import os, pathlib, sys, tempfile
from hiera_mcp.sandbox.child import trace_forward, tracer
with tempfile.TemporaryDirectory() as warm:
    path = pathlib.Path(warm, "hiera_reference.py")
    path.write_text(sys.argv[1])
    trace_forward.observe(path, "float32", 0)
for line in sys.stdin:
    folder = line.strip()
    pid = os.fork()
    if pid == 0:
        os._exit(tracer.main(["--request", folder + "/request.json", "--result", folder + "/result.json"]))
    print(os.waitpid(pid, 0)[1], file=sys.__stderr__, flush=True)
"""
"""Imports torch and warms fake tensors up once, and forks for each request: every trace starts from the same state."""

WARM = """
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.LayerNorm(4))
    def forward(self, x):
        return self.net(x)
def get_inputs():
    return [torch.rand(2, 4)]
def get_init_inputs():
    return []
"""


@pytest.fixture
def linear_relu() -> Contract:
    """relu(x @ weight.T + bias) on cpu, written by hand: 64 × 96 → 64 × 32, float32."""
    return Contract.model_validate_json((HERE / "linear_relu.json").read_text())


@pytest.fixture(scope="session")
def tracer_process() -> Generator[subprocess.Popen[str]]:
    root = str(Path(hiera_mcp.__file__).parents[1])
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", SERVE, WARM],
        stdin=pipe,
        stdout=subprocess.DEVNULL,
        stderr=pipe,
        text=True,
        env=os.environ | {"PYTHONPATH": root, "PYTHONWARNINGS": "ignore"},
    )
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def trace(tracer_process: subprocess.Popen[str], tmp_path: Path) -> Callable[..., Trace]:
    """Trace a task text. Raises the typed error that the tracer wrote."""

    def run(source: str, **options: Any) -> Trace:
        request = TraceRequest(source=source, name="task", **options)
        (tmp_path / "request.json").write_text(request.model_dump_json())
        (tmp_path / "result.json").unlink(missing_ok=True)
        assert tracer_process.stdin and tracer_process.stderr
        tracer_process.stdin.write(f"{tmp_path}\n")
        tracer_process.stdin.flush()
        log: list[str] = []
        while not (line := tracer_process.stderr.readline()).strip().isdigit():
            assert line, "the tracer is gone: " + "".join(log)
            log.append(line)
        assert line.strip() == "0", "".join(log)
        result = json.loads((tmp_path / "result.json").read_text())
        if "error" in result:
            raise error_from_dict(result["error"])
        return Trace.model_validate(result["trace"])

    return run


@pytest.fixture
def contract_of(trace: Callable[..., Trace]) -> Callable[..., Contract]:
    """The cpu contract of a task text."""

    def build(source: str, precision: Precision = "float32", **options: Any) -> Contract:
        traced = trace(source, precision=precision, **options)
        task = Task(name="task", source=source)
        return build_contract(task, "cpu", precision, traced, cpu_peaks(traced, HOST), 1 << 36)

    return build


@pytest.fixture
def error_of(trace: Callable[..., Trace]) -> Callable[..., HieraError]:
    """The error that a task text gets."""

    def run(source: str, **options: Any) -> HieraError:
        with pytest.raises(HieraError) as caught:
            trace(source, **options)
        return caught.value

    return run


@pytest.fixture
def task_text() -> Callable[..., str]:
    """A task in KernelBench format from the bodies of its parts."""

    def text(
        forward: str = "return x",
        inputs: str = "[torch.rand(4, 8)]",
        init: str = "pass",
        args: str = "x",
        init_args: str = "",
        init_inputs: str = "[]",
        head: str = "",
    ) -> str:
        return f"""
import torch
import torch.nn as nn
import torch.nn.functional as F
{head}

class Model(nn.Module):
    def __init__(self, {init_args}):
        super().__init__()
        {init}

    def forward(self, {args}):
        {forward}


def get_inputs():
    return {inputs}


def get_init_inputs():
    return {init_inputs}
"""

    return text
