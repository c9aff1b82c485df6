"""Candidates that fail in every way end as a verdict, and the next good one passes."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hiera_mcp.model.evaluation import Evaluation, Status
from hiera_mcp.model.space import Space
from hiera_mcp.sandbox.child.tree import children
from hiera_mcp.sandbox.local import LocalExecutor

pytestmark = pytest.mark.asyncio(loop_scope="module")

DAEMON = """
import os
import signal

import torch

if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        signal.pause()


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
"""

PYTORCH = Space.CPP_LIBRARIES_PYTORCH
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


async def test_an_endless_loop_is_a_timeout_and_the_next_good_candidate_passes(
    executor: LocalExecutor, request_for: Any, tree: Any, alive: Any
):
    result = await evaluate(executor, request_for(inside="for (volatile int on = 1; on;) {}", **{**FAST, "total_s": 4}))
    assert result.status is Status.TIMEOUT, result.reason
    assert "4 s" in result.reason
    assert (await evaluate(executor, request_for(**FAST))).status is Status.PASSED


@pytest.mark.parametrize(
    ("fault", "name"),
    [("*(volatile int *)8 = 1;", "SIGSEGV"), ("__builtin_trap();", "SIGILL"), ("abort();", "SIGABRT")],
)
async def test_a_fault_is_a_crash_that_names_its_signal(
    executor: LocalExecutor, request_for: Any, fault: str, name: str
):
    result = await evaluate(executor, request_for("#include <cstdlib>", fault, **FAST))
    assert result.status is Status.CRASH
    assert name in result.reason


async def test_an_exit_with_status_0_in_a_constructor_is_a_crash(executor: LocalExecutor, request_for: Any):
    early = "#include <unistd.h>\nstruct Early { Early() { _exit(0); } } early;"
    result = await evaluate(executor, request_for(early, **FAST))
    assert result.status is Status.CRASH
    assert "status 0" in result.reason


async def test_too_much_memory_is_a_resource_limit_or_a_crash_that_says_so(executor: LocalExecutor, request_for: Any):
    eat = "for (;;) { volatile char *p = new char[64 << 20]; for (long i = 0; i < 64 << 20; i += 4096) p[i] = 1; }"
    result = await evaluate(executor, request_for(inside=eat, **{**FAST, "memory_bytes": 1 << 30}))
    assert result.status in (Status.RESOURCE_LIMIT, Status.CRASH)
    assert "memory" in result.reason or "bad_alloc" in result.reason


async def test_a_flood_of_output_is_a_resource_limit(executor: LocalExecutor, request_for: Any):
    flood = 'for (;;) puts("a line that is printed for ever and ever and ever");'
    result = await evaluate(executor, request_for("#include <cstdio>", flood, **FAST))
    assert result.status is Status.RESOURCE_LIMIT, result.reason
    assert "output" in result.reason


async def test_what_does_not_compile_is_a_compile_error_with_its_line(executor: LocalExecutor, request_for: Any):
    result = await evaluate(executor, request_for(inside="int x = ;", **FAST))
    assert result.status is Status.COMPILE_ERROR
    assert "cpu_source.cpp:" in result.reason


async def test_a_wrong_candidate_is_wrong_and_carries_no_time(executor: LocalExecutor, request_for: Any):
    result = await evaluate(executor, request_for(inside="return 0;", **FAST))
    assert result.status is Status.WRONG_OUTPUT
    assert result.timing is None


async def test_an_error_code_is_a_crash(executor: LocalExecutor, request_for: Any):
    result = await evaluate(executor, request_for(inside="return 7;", **FAST))
    assert result.status is Status.CRASH
    assert "7" in result.reason


async def test_a_daemon_of_the_candidate_is_gone_with_its_evaluation(
    executor: LocalExecutor, request_for: Any, tree: Any, alive: Any
):
    await evaluate(executor, request_for(**FAST))
    before = tree(launcher_pid(executor))
    request = request_for(**FAST).model_copy(update={"space": PYTORCH, "sources": {"model_new.py": DAEMON}})
    result = await evaluate(executor, request)
    assert result.status is Status.PASSED, result.reason
    assert alive(tree(launcher_pid(executor))) <= before


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
