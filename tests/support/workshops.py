"""Tasks, contracts and verdicts on the real executor in its sandbox, for the tests of exploits and of honest candidates."""

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from anyio import create_task_group
from anyio.from_thread import BlockingPortal

from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.contracts.build import build_contract, cpu_peaks
from hiera_mcp.knowledge_base import hardware
from hiera_mcp.model.contract import Contract, Precision, Task
from hiera_mcp.model.evaluation import Evaluation
from hiera_mcp.model.profile import Profile
from hiera_mcp.model.space import MODEL_FILE, Space, Target, is_cpu, source_file, spaces_of
from hiera_mcp.model.work import (
    CheckReport,
    CompareRequest,
    EvaluateRequest,
    Limits,
    PairReport,
    ProfileRequest,
    Rival,
    TraceRequest,
)
from hiera_mcp.sandbox.local import LocalExecutor

TASKS = Path(__file__).parents[1] / "tasks"
LIMITS = Limits(call_s=5.0, rounds_s=0.3, total_s=60.0)

Order = tuple[Contract, str, Space | None]
"""What to compile: a contract, a source text, and the space (None: the smallest)."""


class Workshop:
    """Builds contracts for one target and evaluates candidates.

    Args:
        portal: where the executor lives.
        cache: folder of compiled candidates.
        target: `cpu`, or a GPU's own.
    """

    def __init__(self, portal: BlockingPortal, cache: Path, target: Target = "cpu") -> None:
        self._portal = portal
        self._executor = portal.call(functools.partial(LocalExecutor, cache_dir=cache))
        self._contracts: dict[tuple[str, Precision, bool], Contract] = {}
        self.target = target

    def contract(
        self, source: str, precision: Precision = "float32", name: str = "task", tf32: bool = False
    ) -> Contract:
        """The contract of a task's text, from the real tracer."""
        key = (source, precision, tf32)
        if key not in self._contracts:
            self._contracts[key] = self._build(source, precision, name, tf32)
        return self._contracts[key]

    def task(self, name: str, precision: Precision = "float32", tf32: bool = False) -> Contract:
        """The contract of tests/tasks/NAME.py."""
        return self.contract((TASKS / f"{name}.py").read_text(), precision, name, tf32)

    def evaluate(
        self, contract: Contract, code: str, python: bool = False, space: Space | None = None, limits: Limits = LIMITS
    ) -> Evaluation:
        """The verdict on a candidate: C++ or CUDA in the smallest space unless another is given, or a model_new.py."""
        request = self._request(contract, code, python, space, limits)
        result = self._portal.call(self._executor.evaluate, request, _quiet)
        assert isinstance(result, Evaluation), result
        return result

    def profile(self, contract: Contract, code: str, python: bool = False) -> Profile:
        """The profile of C++ or CUDA in the smallest space, or of a model_new.py, as if it had not been timed."""
        request = self._request(contract, code, python, None, LIMITS)
        fields = request.model_dump(include={"contract", "files", "space", "sources", "limits", "device"})
        return self._portal.call(
            self._executor.profile, ProfileRequest.model_validate({**fields, "timing": None}), _quiet
        ).profile

    def compare(self, contract: Contract, this: str, other: str) -> PairReport:
        """Two candidates in the smallest space, timed against each other in one session."""
        order = self._request(contract, this, False, None, LIMITS)
        rival = Rival(space=order.space, sources={source_file(self.target): other})
        request = CompareRequest.model_validate({**order.model_dump(exclude={"protocol"}), "other": rival})
        return self._portal.call(self._executor.compare, request, _quiet)

    def check(self, orders: Sequence[Order]) -> list[CheckReport]:
        """Compile many at the same time; an evaluation finds them compiled then."""
        return self._portal.call(self._check_all, orders)

    def close(self) -> None:
        self._portal.call(self._executor.close)

    def _build(self, source: str, precision: Precision, name: str, tf32: bool) -> Contract:
        task = Task(name=name, source=source)
        if is_cpu(self.target):
            rates = self._portal.call(self._executor.host_rates, _quiet)
            request = TraceRequest(source=source, name=name, precision=precision, rates=rates)
            trace = self._portal.call(self._executor.trace, request, _quiet)
            return build_contract(task, "cpu", precision, trace, cpu_peaks(trace, rates), 8 << 30)
        request = TraceRequest(source=source, name=name, precision=precision)
        trace = self._portal.call(self._executor.trace, request, _quiet)
        gpu = hardware.gpu_for(self.target)
        return build_contract(
            task, self.target, precision, trace, hardware.peaks(gpu), gpu.memory_bytes, allow_tf32=tf32, device=gpu.name
        )

    def _request(
        self, contract: Contract, code: str, python: bool, space: Space | None, limits: Limits
    ) -> EvaluateRequest:
        smallest, _, largest = spaces_of(self.target)
        return EvaluateRequest(
            contract=contract,
            files=render_files(contract),
            space=largest if python else space or smallest,
            sources={MODEL_FILE if python else source_file(self.target): code},
            limits=limits,
            device="cpu" if is_cpu(self.target) else "auto",
        )

    async def _check_all(self, orders: Sequence[Order]) -> list[CheckReport]:
        reports: dict[int, CheckReport] = {}

        async def check(n: int, order: Order) -> None:
            contract, code, space = order
            request = self._request(contract, code, False, space, LIMITS)
            reports[n] = await self._executor.check(request, _quiet)

        async with create_task_group() as group:
            for n, order in enumerate(orders):
                group.start_soon(check, n, order)
        return [reports[n] for n in range(len(orders))]


def chosen(request: pytest.FixtureRequest, parameter: str) -> list[Any]:
    """The values of a parameter with which the asking module's tests will run, to compile them beforehand. None where other
    tests run beside: they take the other processors, and each process knows all tests, not its own."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return []
    specs = [getattr(item, "callspec", None) for item in request.session.items if item.path == request.path]
    return [spec.params[parameter] for spec in specs if spec and parameter in spec.params]


async def _quiet(message: str, fraction: float | None) -> None:
    pass
