"""Run the compiler on every case of a candidate, each in a box, and take in what it left."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path

from hiera_mcp.model.work import Limits
from hiera_mcp.sandbox import elf
from hiera_mcp.sandbox.compilers.base import Compiler, Failure, Job, Tool
from hiera_mcp.sandbox.compilers.cache import read_artefact
from hiera_mcp.sandbox.compilers.diagnostics import dependencies
from hiera_mcp.sandbox.compilers.outcome import judge
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.sandbox.isolation.binds import toolkit_binds
from hiera_mcp.sandbox.isolation.box import BoxLimits, BoxSpec, Isolation
from hiera_mcp.sandbox.isolation.process import run

MOST_MEMORY = 8 << 30
"""Enough for CUTLASS; a compiler that wants more is led astray."""
_MOST_DEPENDENCY_BYTES = 16 << 20


@dataclass(frozen=True)
class Site:
    """Where and under which limits a candidate is compiled."""

    isolation: Isolation
    work: Path
    limits: Limits

    @property
    def box_limits(self) -> BoxLimits:
        return BoxLimits(
            memory_bytes=min(self.limits.memory_bytes, MOST_MEMORY),
            memory_kind="address_space",
            disk_bytes=self.limits.disk_bytes,
            processes=self.limits.processes,
            output_bytes=self.limits.output_bytes,
        )


@dataclass(frozen=True)
class Compiled:
    """One case, compiled or not."""

    job: Job
    log: str
    failure: Failure | None
    reason: str
    includes: tuple[str, ...] = ()
    """Files that the candidate's compilation opened, normalised."""
    shared_object: bytes = b""
    """Read once, so that what was checked is what will be loaded."""
    dynamic: elf.Dynamic | None = None


async def compile_cases(
    compiler: Compiler, tool: Tool, jobs: tuple[Job, ...], site: Site, notify: Notify
) -> tuple[Compiled, ...]:
    """All cases in their order, at most one per processor at a time; or the first that failed, alone.

    Raises:
        SandboxError: the compiler could not be run.
    """
    done: list[Compiled] = []
    total = len(jobs)
    await notify(f"compiling {total} case{'s' * (total > 1)} with {tool.name}", 0.0)
    async with aclosing(_as_they_end(compiler, tool, jobs, site)) as results:
        async for result in results:
            if result.failure is not None:
                return (result,)
            done.append(result)
            await notify(f"compiled case {len(done)} of {total}", len(done) / total)
    return tuple(sorted(done, key=lambda c: c.job.case))


async def _as_they_end(compiler: Compiler, tool: Tool, jobs: tuple[Job, ...], site: Site) -> AsyncGenerator[Compiled]:
    """Results as they come. Closing it kills what still compiles."""
    gate = asyncio.Semaphore(os.cpu_count() or 1)
    deadline = time.monotonic() + site.limits.compile_s
    tasks = [asyncio.create_task(_case(compiler, tool, job, site, gate, deadline)) for job in jobs]
    try:
        for task in asyncio.as_completed(tasks):
            yield await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _case(
    compiler: Compiler, tool: Tool, job: Job, site: Site, gate: asyncio.Semaphore, deadline: float
) -> Compiled:
    binds = (*toolkit_binds(), *(bind for library in job.libraries for bind in library.binds))
    spec = BoxSpec(
        argv=compiler.command(tool, job),
        work=site.work,
        limits=site.box_limits,
        binds=tuple(dict.fromkeys(binds)),
        env={"LC_ALL": "C"},
    )
    async with gate:
        outcome = await run(site.isolation, spec, max(deadline - time.monotonic(), 0.1))
    failure, reason = judge(outcome, tool.name, site.limits)
    compiled = Compiled(job, outcome.output, failure, reason, _includes(site.work / job.dependencies))
    return compiled if failure else _with_artefact(compiled, site.work, tool)


def _with_artefact(compiled: Compiled, work: Path, tool: Tool) -> Compiled:
    data = read_artefact(work / compiled.job.output)
    try:
        if data is None:
            raise elf.BadElf("it is not there, or no regular file of an acceptable size")
        return replace(compiled, shared_object=data, dynamic=elf.read(data))
    except elf.BadElf as e:
        reason = f"{tool.name} ended well, but {compiled.job.output} cannot be used: {e}."
        return replace(compiled, failure="compile_error", reason=reason)


def _includes(path: Path) -> tuple[str, ...]:
    data = read_artefact(path, _MOST_DEPENDENCY_BYTES)
    names = dependencies(data.decode(errors="replace")) if data else ()
    return tuple(os.path.normpath(name) for name in names)
