"""A workshop on the real executor, shared by tests/exploits and tests/honest: tasks in tests/tasks, one warm judge."""

import functools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.contracts.build import build_contract, cpu_peaks
from hiera_mcp.model.contract import Contract, Precision, Task
from hiera_mcp.model.evaluation import Evaluation
from hiera_mcp.model.space import MODEL_FILE, Space
from hiera_mcp.model.work import EvaluateRequest, Limits, TraceRequest
from hiera_mcp.sandbox.local import LocalExecutor

TASKS = Path(__file__).parent / "tasks"
LIMITS = Limits(call_s=5.0, rounds_s=0.3, total_s=60.0)


class Workshop:
    """Builds contracts for target cpu and evaluates candidates, on the real executor in its sandbox."""

    def __init__(self, portal: BlockingPortal, cache: Path) -> None:
        self._portal = portal
        self._executor = portal.call(functools.partial(LocalExecutor, cache_dir=cache))
        self._contracts: dict[tuple[str, Precision], Contract] = {}

    def contract(self, source: str, precision: Precision = "float32", name: str = "task") -> Contract:
        """The contract of a task's text, from the real tracer."""
        key = (source, precision)
        if key not in self._contracts:
            rates = self._portal.call(self._executor.host_rates, _quiet)
            request = TraceRequest(source=source, name=name, precision=precision, rates=rates)
            trace = self._portal.call(self._executor.trace, request, _quiet)
            task = Task(name=name, source=source)
            self._contracts[key] = build_contract(task, "cpu", precision, trace, cpu_peaks(trace, rates), 8 << 30)
        return self._contracts[key]

    def task(self, name: str, precision: Precision = "float32") -> Contract:
        """The contract of tests/tasks/NAME.py."""
        return self.contract((TASKS / f"{name}.py").read_text(), precision, name)

    def evaluate(self, contract: Contract, code: str, python: bool = False) -> Evaluation:
        """The verdict on a candidate: C++ in the smallest space, or a model_new.py."""
        sources = {MODEL_FILE: code} if python else {"cpu_source.cpp": code}
        space = Space.CPP_LIBRARIES_PYTORCH if python else Space.CPP
        request = EvaluateRequest(
            contract=contract, files=render_files(contract), space=space, sources=sources, limits=LIMITS, device="cpu"
        )
        result = self._portal.call(self._executor.evaluate, request, _quiet)
        assert isinstance(result, Evaluation), result
        return result

    def close(self) -> None:
        self._portal.call(self._executor.close)


async def _quiet(message: str, fraction: float | None) -> None:
    pass


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    for tool in ("g++", "bwrap"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")
    with start_blocking_portal("asyncio") as portal:
        made = Workshop(portal, tmp_path_factory.mktemp("compiled"))
        yield made
        made.close()
