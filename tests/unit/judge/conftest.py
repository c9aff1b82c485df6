"""A driver that starts judge and runner as plain processes, without a launcher or a sandbox, and compiles the candidate.

tests/gpu/test_judge_on_cuda.py loads this file too.
"""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from warm_runners import WarmRunners

import hiera_mcp
from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.model.contract import (
    Case,
    Contract,
    Degeneracy,
    Features,
    Floor,
    Parameter,
    Scalar,
    Task,
    TensorSpec,
    Tolerance,
)
from hiera_mcp.model.space import source_file
from hiera_mcp.model.work import JudgeReport
from hiera_mcp.sandbox.child.values import as_list
from hiera_mcp.sandbox.child.wire import receive, send

GXX = ("g++", "-O2", "-march=native", "-fopenmp", "-std=c++17", "-shared", "-fPIC")
NVCC = ("nvcc", "-O3", "-arch=native", "-std=c++17", "-shared", "-Xcompiler", "-fPIC")


def _dtype(tensor: torch.Tensor) -> Any:
    return str(tensor.dtype).removeprefix("torch.")


def _spec(name: str, tensor: torch.Tensor) -> TensorSpec:
    return TensorSpec(name=name, shape=tuple(tensor.shape), dtype=_dtype(tensor))


NO_WORK = Features(
    operators=(),
    flops=1,
    compulsory_bytes=1,
    unfused_bytes=1,
    arithmetic_intensity=1,
    launches=1,
    parameter_bytes=0,
    tensor_core_legal=False,
    tensor_core_reason="cpu",
)
NO_FLOOR = Floor(
    seconds=1e-9,
    bound="memory",
    memory_seconds=1e-9,
    math_seconds=1e-9,
    bandwidth=1e9,
    peak_flops=1e9,
    basis="a floor that nothing can break",
    arithmetic="1e-9",
)


def build_contract(
    source: str, notes: tuple[str, ...] = (), extra_shapes: tuple[tuple[int, ...], ...] = (), target: str = "cpu"
) -> Contract:
    """A contract with the interface that running `source` here shows; further cases give the first input another shape."""
    module: dict[str, Any] = {}
    exec(source, module)  # noqa: S102
    model: Any = module["Model"](*module["get_init_inputs"]())
    if "mode: eval" in notes:
        model.eval()
    args = list(module["get_inputs"]())
    every = (args, *([torch.rand(shape), *args[1:]] for shape in extra_shapes))
    return Contract(
        task=Task(name="test", source=source),
        target=target,
        precision="float32",
        parameters=_parameters(model),
        cases=tuple(_case(f"case{n}", model, own) for n, own in enumerate(every)),
        tolerance=Tolerance(rtol=1e-4, atol=1e-4, reference_factor=4.0, allow_tf32=False),
        features=NO_WORK,
        floor=NO_FLOOR,
        degeneracy=Degeneracy(measured=False, reason="test"),
        notes=notes,
    )


def _case(name: str, model: Any, args: list[Any]) -> Case:
    named = {f"x{n}": value for n, value in enumerate(args)}
    with torch.no_grad():
        results = as_list(model(*args))
    return Case(
        name=name,
        inputs=tuple(_spec(k, v) for k, v in named.items() if isinstance(v, torch.Tensor)),
        scalars=tuple(Scalar(name=k, value=v) for k, v in named.items() if not isinstance(v, torch.Tensor)),
        outputs=tuple(_spec(f"y{i}", t) for i, t in enumerate(results)),
        forward_order=tuple(named),
    )


def _parameters(model: Any) -> tuple[Parameter, ...]:
    attributes: dict[str, Any] = {k: v for k, v in model.__dict__.items() if isinstance(v, torch.Tensor)}
    state: dict[str, Any] = {**dict(model.named_parameters()), **dict(model.named_buffers()), **attributes}
    return tuple(
        Parameter(
            name=path.replace(".", "_"),
            shape=tuple(t.shape),
            dtype=_dtype(t),
            path=path,
            role="parameter",
            layout="row-major",
            consumed_by="Model",
        )
        for path, t in state.items()
    )


class Driver:
    """One warm judge, and a fresh runner for each candidate."""

    def __init__(self, root: Path, device: str = "cpu") -> None:
        self._root = root
        self._device = device
        self._count = 0
        self.events: list[dict[str, Any]] = []
        self._warm: WarmRunners | None = None
        self._judge, self._sock = _spawn("judge", root, device)
        self.ready, _ = receive(self._sock)

    def judge(
        self, contract: Contract, cpp: str | None = None, python: str | None = None, **options: Any
    ) -> JudgeReport:
        """Compile and judge; the report is validated by the model."""
        event = self.ask(contract, cpp, python, **options)
        assert event["event"] == "report", event
        return JudgeReport.model_validate(event["report"])

    def ask(
        self, contract: Contract, cpp: str | None = None, python: str | None = None, op: str = "judge", **options: Any
    ) -> dict[str, Any]:
        """The same; the last event as it came."""
        self._count += 1
        box = self._root / f"box{self._count}"
        box.mkdir()
        if cpp is not None:
            compile_candidate(contract, cpp, box)
        if python is not None:
            (box / "model_new.py").write_text(python)
        end, peer = self._runner(box, python is not None)
        order = {
            "op": op,
            "job": f"j{self._count}",
            "contract": contract.model_dump(mode="json"),
            "candidate": {"kind": "python" if python else "c_abi"},
            "options": {"protocol": "hiera", "call_s": 5.0, "load_s": 30.0, "rounds_s": 0.2, **options},
        }
        send(self._sock, order, (peer.fileno(),))
        peer.close()
        try:
            return self._wait()
        finally:
            end()

    def compare(self, contract: Contract, this: str, other: str, **options: Any) -> dict[str, Any]:
        """Two C++ candidates in one session; the last event as it came."""
        started: list[tuple[Callable[[], None], socket.socket]] = []
        for code in (this, other):
            self._count += 1
            box = self._root / f"box{self._count}"
            box.mkdir()
            compile_candidate(contract, code, box)
            started.append(self._runner(box, python=False))
        order = {
            "op": "compare",
            "job": f"j{self._count}",
            "contract": contract.model_dump(mode="json"),
            "candidates": [{"kind": "c_abi"}, {"kind": "c_abi"}],
            "options": {"call_s": 5.0, "load_s": 30.0, "compare_s": 1.0, **options},
        }
        send(self._sock, order, tuple(peer.fileno() for _, peer in started))
        for _, peer in started:
            peer.close()
        try:
            return self._wait()
        finally:
            for end, _ in started:
                end()

    def _runner(self, box: Path, python: bool) -> tuple[Callable[[], None], socket.socket]:
        """A fresh runner: what ends it, and the judge's end of its channel. For a ModelNew on the processor with torch imported."""
        if python and self._device == "cpu":
            warm = self._warm = self._warm or WarmRunners()
            pid, peer = warm.start(box)
            return lambda: warm.end(pid), peer
        process, peer = _spawn("runner", box, self._device, "--box", str(box))

        def end() -> None:
            process.kill()
            process.wait()

        return end, peer

    def _wait(self) -> dict[str, Any]:
        self.events.clear()
        while True:
            event, _ = receive(self._sock)
            self.events.append(event)
            if event["event"] in ("report", "failed"):
                return event

    def close(self) -> None:
        if self._warm is not None:
            self._warm.close()
        self._sock.close()
        assert self._judge.wait(timeout=20) == 0


def _spawn(child: str, cwd: Path, device: str, *more: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    argv = [
        sys.executable,
        "-P",
        "-m",
        f"hiera_mcp.sandbox.child.{child}",
        "--fd",
        str(theirs.fileno()),
        "--device",
        device,
    ]
    env = {**os.environ, "PYTHONPATH": str(Path(hiera_mcp.__file__).parents[1])}
    process = subprocess.Popen([*argv, *more], cwd=cwd, env=env, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL)
    theirs.close()
    return process, ours


def compile_candidate(contract: Contract, code: str, box: Path) -> None:
    source = source_file(contract.target)
    for name, text in {**render_files(contract), source: code}.items():
        (box / name).write_text(text)
    compiler = GXX if contract.target == "cpu" else NVCC
    for n in range(len(contract.cases)):
        command = [*compiler, f"-DHIERA_CASE={n}", "-o", f"case{n}.so", source, "cpp_source.cpp"]
        subprocess.run(command, cwd=box, check=True)


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    if not shutil.which("g++"):
        pytest.skip("needs g++")
    driver = Driver(tmp_path_factory.mktemp("judge"))
    yield driver
    driver.close()


@pytest.fixture(scope="session")
def contract_for() -> Callable[..., Contract]:
    return build_contract
