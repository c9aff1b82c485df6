"""Requests to one launcher: what a result tells, several at once, and nothing left. What becomes of candidates that fail
is in tests/faults/server."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hiera_mcp.model.evaluation import Evaluation, Status
from hiera_mcp.sandbox.child.tree import children
from hiera_mcp.sandbox.local import LocalExecutor

pytestmark = pytest.mark.asyncio(loop_scope="module")

FAST = {"compile_s": 60, "load_s": 20, "call_s": 2, "total_s": 60}


async def silent(message: str, fraction: float | None) -> None:
    """For those who do not want to know."""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def executor(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[LocalExecutor]:
    """One launcher with one warm judge for all of this file."""
    made = LocalExecutor(cache_dir=tmp_path_factory.mktemp("cache"))
    yield made
    await made.close()


async def evaluate(executor: LocalExecutor, request: Any) -> Evaluation:
    result = await executor.evaluate(request, silent)
    assert isinstance(result, Evaluation)
    return result


async def test_a_good_candidate_passes_and_names_where_it_ran(executor: LocalExecutor, request_for: Any):
    result = await evaluate(executor, request_for(**FAST))
    assert result.status is Status.PASSED, result.reason
    assert result.timing is not None and result.build is not None and result.device is not None
    assert result.device.isolation != "none" and result.device.torch


async def test_a_check_builds_and_looks_and_takes_an_evaluations_request_as_well(
    executor: LocalExecutor, request_for: Any
):
    report = await executor.check(request_for(**FAST), silent)
    assert report.build.ok and report.space_findings == ()
    assert report.device.compiler and "nothing" not in report.build.command


async def test_concurrent_candidates_each_get_their_own_verdict(executor: LocalExecutor, request_for: Any):
    wrong, broken, good = request_for(inside="return 0;"), request_for(inside="int y = ;"), request_for()
    results = await asyncio.gather(*(evaluate(executor, r) for r in (wrong, broken, good)))
    assert [r.status for r in results] == [Status.WRONG_OUTPUT, Status.COMPILE_ERROR, Status.PASSED]


async def test_nothing_is_left_in_the_work_folders(executor: LocalExecutor, request_for: Any):
    await evaluate(executor, request_for(**FAST))
    roots = [Path(p) for p in _open_folders(launcher_pid(executor)) if "hiera-work-" in p]
    (root,) = set(roots)
    assert [p.name for p in root.iterdir() if p.name.startswith(("runner-", "trace-"))] == []


def launcher_pid(executor: Any) -> int:
    return children(executor._launcher._process.pid)[0]


def _open_folders(pid: int) -> list[str]:
    return [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()]
