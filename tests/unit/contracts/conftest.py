"""Contracts to test with: one made by hand, and any task text, traced by the real tracer."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

import hiera_mcp
from hiera_mcp.contracts.build import build_contract, cpu_peaks
from hiera_mcp.errors import HieraError
from hiera_mcp.model.contract import Contract, Precision, Task
from hiera_mcp.model.work import HostRates, Trace, TraceRequest
from hiera_mcp.sandbox.child import wire
from hiera_mcp.sandbox.launcher.tracing import read_trace

HERE = Path(__file__).parent
HOST = HostRates(bandwidth=((1 << 20, 2e10), (1 << 24, 1e10)), flops={"fp32": 1e11, "fp64": 5e10})
"""A host to build contracts for."""


@pytest.fixture
def host_rates() -> HostRates:
    return HOST


@pytest.fixture
def linear_relu() -> Contract:
    """relu(x @ weight.T + bias) on cpu, written by hand: 64 × 96 → 64 × 32, float32."""
    return Contract.model_validate_json((HERE / "linear_relu.json").read_text())


class WarmTracer:
    """The tracer, without a box: it ends, and is started again, when files appear where all programs may write."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "log"
        self._folder = folder / "box"
        self._folder.mkdir()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel = socket.socket()

    def ask(self, request: TraceRequest) -> dict[str, Any]:
        """Its answer.

        Raises:
            AssertionError: it ended; says what it wrote.
        """
        for fresh in (self._process is None, True):
            if fresh:
                self.end()
                self._start()
            try:
                wire.send(self._channel, {"request": request.model_dump(mode="json")})
                return wire.receive(self._channel)[0]
            except wire.Closed:
                continue
        raise AssertionError(f"the tracer is gone: {self._log.read_text()}")

    def end(self) -> None:
        if self._process is not None:
            self._channel.close()
            self._process.wait(30)
            self._process = None

    def _start(self) -> None:
        self._channel, theirs = socket.socketpair()
        environment = {"PYTHONPATH": str(Path(hiera_mcp.__file__).parents[1]), "PYTHONWARNINGS": "ignore"}
        with theirs, self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "hiera_mcp.sandbox.child.tracer", "--fd", str(theirs.fileno())],
                stdout=log,
                stderr=log,
                pass_fds=(theirs.fileno(),),
                env=os.environ | environment | {"HIERA_BOX": str(self._folder), "TMPDIR": str(self._folder)},
            )
        assert wire.receive(self._channel)[0] == {"event": "ready"}


@pytest.fixture(scope="session")
def warm_tracer(tmp_path_factory: pytest.TempPathFactory) -> Generator[WarmTracer]:
    tracer = WarmTracer(tmp_path_factory.mktemp("tracer"))
    yield tracer
    tracer.end()


@pytest.fixture
def trace(warm_tracer: WarmTracer) -> Callable[..., Trace]:
    """Trace a task text. Raises the typed error that the tracer tells."""

    def run(source: str, **options: Any) -> Trace:
        return read_trace(warm_tracer.ask(TraceRequest(source=source, name="task", **options)))

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
