"""Build a candidate: compile every case in a box, read what came out, remember it by content."""

import asyncio
import dataclasses
import os
import platform
import shlex
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import hiera_mcp
from hiera_mcp.model.base import digest
from hiera_mcp.model.evaluation import Build, Diagnostic, KernelResources, SpaceFinding
from hiera_mcp.model.space import MODEL_FILE, Target
from hiera_mcp.model.work import CheckRequest, Limits
from hiera_mcp.sandbox import elf
from hiera_mcp.sandbox.compilers import candidate, diagnostics, inspect
from hiera_mcp.sandbox.compilers.base import Compiler, Failure, Job, Tool
from hiera_mcp.sandbox.compilers.cache import BuildCache, Record, read_artefact
from hiera_mcp.sandbox.compilers.gxx import GXX
from hiera_mcp.sandbox.compilers.inspect import Insight
from hiera_mcp.sandbox.compilers.nvcc import NVCC
from hiera_mcp.sandbox.compilers.outcome import judge
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.sandbox.isolation.binds import toolkit_binds
from hiera_mcp.sandbox.isolation.box import BoxLimits, BoxSpec, Isolation, Outcome
from hiera_mcp.sandbox.isolation.process import run
from hiera_mcp.sandbox.libraries import known
from hiera_mcp.sandbox.space import Evidence, findings

COMPILERS: tuple[Compiler, ...] = (GXX, NVCC)
"""One per platform. A new compiler is a module like gxx.py and an entry here."""

MOST_COMPILE_MEMORY = 8 << 30
CACHE_FORMAT = 2


@dataclass(frozen=True)
class Built:
    """A candidate, compiled or not."""

    folder: Path
    """What the runner sees as /box: case0.so, …, and for a ModelNew model_new.py. Shared: never write to it."""
    build: Build
    findings: tuple[SpaceFinding, ...]
    """What lies outside the space. Also filled when the build failed because of it: then the space is the cause."""
    instruction_mix: dict[str, int]
    failure: Failure | None
    reason: str
    """One line: why the build failed; empty when it did not."""
    kind: Literal["c_abi", "python"]
    """What the runner has to load."""
    compiler: str
    """Name and version; empty when nothing was compiled."""


@dataclass(frozen=True)
class _Result:
    """One case, compiled."""

    job: Job
    outcome: Outcome
    failure: Failure | None
    reason: str


def compiler_for(target: Target) -> Compiler:
    """The compiler that serves a target."""
    return next(c for c in COMPILERS if c.serves(target))


def find_tool(target: Target) -> Tool:
    """The compiler of this host for a target.

    Raises:
        ToolchainError: there is none, or it cannot build for the target; says what to install.
    """
    return compiler_for(target).find(target)


async def build(request: CheckRequest, isolation: Isolation, cache_dir: Path, notify: Notify) -> Built:
    """Compile all cases of a candidate and check its space. A candidate that fails is a result, not an error.

    Raises:
        RequestError: its files have names that are not legal.
        ToolchainError: the compiler is missing.
        SandboxError: the box or the cache folder failed.
    """
    candidate.check_files(request)
    plan = candidate.plan(request, compiler_for(request.contract.target))
    cache, key = BuildCache(cache_dir), _key(plan, isolation)
    record = cache.find(key)
    cached = record is not None
    if record is None:
        record = await _Builder(request, plan, isolation, cache, notify).build(key)
    evidence = dataclasses.replace(record.evidence, files=tuple(request.sources))
    return Built(
        folder=cache.artefacts(key),
        build=record.build.model_copy(update={"cached": cached}),
        findings=findings(request.contract.target, request.space, evidence),
        instruction_mix=record.instruction_mix,
        failure=record.failure,
        reason=record.reason,
        kind="python" if candidate.is_python(request) else "c_abi",
        compiler=record.compiler,
    )


def _key(plan: candidate.Plan, isolation: Isolation) -> str:
    """Everything that the result depends on, and nothing else."""
    commands = [plan.compiler.command(plan.tool, job) for job in plan.jobs] if plan.compiler and plan.tool else []
    tool = (plan.tool.version, plan.tool.machine) if plan.tool else ()
    versions = (CACHE_FORMAT, hiera_mcp.__version__, platform.machine(), isolation.name)
    libraries = sorted({(lib.name, lib.version) for job in plan.jobs for lib in job.libraries})
    return digest([versions, tool, libraries, commands, plan.files, plan.loaded], length=40)


class _Builder:
    """One build that is not in the cache."""

    def __init__(
        self, request: CheckRequest, plan: candidate.Plan, isolation: Isolation, cache: BuildCache, notify: Notify
    ) -> None:
        self.request = request
        self.plan = plan
        self.isolation = isolation
        self.cache = cache
        self.notify = notify
        self.limits = _box_limits(request.limits)

    async def build(self, key: str) -> Record:
        loaded = {name: text.encode(errors="replace") for name, text in self.plan.loaded.items()}
        compiler, tool = self.plan.compiler, self.plan.tool
        if compiler is None or tool is None:
            record = _nothing_to_compile()
            self.cache.store(key, record, loaded)
            return record
        with self.cache.scratch() as work:
            for name, text in self.plan.files.items():
                (work / name).write_text(text, errors="replace", newline="")
            started = time.monotonic()
            results = await self._compile(compiler, tool, work)
            record = await self._record(compiler, tool, results, work, time.monotonic() - started)
            artefacts = {} if record.failure else {**self._shared_objects(work), **loaded}
        if _settled(record):
            self.cache.store(key, record, artefacts)
        return record

    async def _compile(self, compiler: Compiler, tool: Tool, work: Path) -> list[_Result]:
        """All cases, at most one per processor at a time; the first failure ends it."""
        results: list[_Result] = []
        total = len(self.plan.jobs)
        await self.notify(f"compiling {total} case{'s' * (total > 1)} with {tool.name}", 0.0)
        async with aclosing(self._finished(compiler, tool, work)) as finished:
            async for result in finished:
                results.append(result)
                if result.failure is not None:
                    return [result]
                await self.notify(f"compiled case {len(results)} of {total}", len(results) / total)
        return sorted(results, key=lambda r: r.job.case)

    async def _finished(self, compiler: Compiler, tool: Tool, work: Path) -> AsyncGenerator[_Result]:
        """Results as they come. Closing it kills what still compiles."""
        gate = asyncio.Semaphore(os.cpu_count() or 1)
        deadline = time.monotonic() + self.request.limits.compile_s
        tasks = [asyncio.create_task(self._case(compiler, tool, job, work, gate, deadline)) for job in self.plan.jobs]
        try:
            for task in asyncio.as_completed(tasks):
                yield await task
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _case(
        self, compiler: Compiler, tool: Tool, job: Job, work: Path, gate: asyncio.Semaphore, deadline: float
    ) -> _Result:
        binds = (*toolkit_binds(), *(bind for library in job.libraries for bind in library.binds))
        spec = BoxSpec(
            argv=compiler.command(tool, job),
            work=work,
            limits=self.limits,
            binds=tuple(dict.fromkeys(binds)),
            env={"LC_ALL": "C"},
        )
        async with gate:
            outcome = await run(self.isolation, spec, max(deadline - time.monotonic(), 0.1))
        failure, reason = judge(outcome, tool.name, self.request.limits)
        return _Result(job, outcome, failure, reason)

    async def _record(
        self, compiler: Compiler, tool: Tool, results: list[_Result], work: Path, seconds: float
    ) -> Record:
        failed = next((r for r in results if r.failure), None)
        first = failed or results[0]
        said = self._diagnostics(first, failed is not None)
        kernels, insight = ((), Insight({}, ())) if failed else await self._look_into(compiler, tool, first, work)
        build = Build(
            ok=failed is None,
            command=self._shown(shlex.join((tool.name, *compiler.command(tool, self.plan.jobs[0])[1:]))),
            seconds=seconds,
            diagnostics=said,
            log=diagnostics.cut(diagnostics.scrub(self._shown(first.outcome.output))),
            kernels=kernels,
        )
        return Record(
            build=build,
            evidence=dataclasses.replace(self._evidence(results, work), instructions=insight.forbidden),
            instruction_mix=insight.mix,
            failure=failed.failure if failed else None,
            reason=_reason(failed, said) if failed else "",
            compiler=tool.version,
        )

    async def _look_into(
        self, compiler: Compiler, tool: Tool, first: _Result, work: Path
    ) -> tuple[tuple[KernelResources, ...], Insight]:
        kernels = compiler.kernels(first.outcome.output)
        kernels = await inspect.demangle(self.isolation, kernels, work, self.limits)
        return kernels, await inspect.look_into(self.isolation, tool, first.job, work, self.limits)

    def _evidence(self, results: list[_Result], work: Path) -> Evidence:
        log = "\n".join(r.outcome.output for r in results)
        includes = [name for r in results for name in _dependencies(work / r.job.dependencies)]
        dynamic = [d for r in results if not r.failure and (d := _dynamic(work / r.job.output)) is not None]
        own = set(self.plan.files) | {self.plan.jobs[0].source}
        return Evidence(
            includes=tuple(dict.fromkeys(name for name in includes if name not in own)),
            missing_includes=diagnostics.missing_includes(log),
            needed=tuple(dict.fromkeys(n for d in dynamic for n in d.needed)),
            symbols=tuple(dict.fromkeys(s for d in dynamic for s in d.undefined)),
            unresolved=diagnostics.unresolved(log),
        )

    def _diagnostics(self, result: _Result, failed: bool) -> tuple[Diagnostic, ...]:
        log = self._shown(result.outcome.output)
        found = diagnostics.parse(log, result.job.source)
        absent = diagnostics.missing_includes(log) if failed else ()
        hints = tuple(
            Diagnostic(severity="note", file=result.job.source, line=None, text=text)
            for name in absent
            if (text := diagnostics.install_hint(name, known(result.job.target)))
        )
        return (*found, *hints)

    def _shared_objects(self, work: Path) -> dict[str, bytes]:
        read = {job.output: read_artefact(work / job.output) for job in self.plan.jobs}
        return {name: data for name, data in read.items() if data is not None}

    def _shown(self, text: str) -> str:
        """Text with host folders of libraries and of the toolkit replaced by their names."""
        labels = {str(b.host): f"<{lib.name}>" for job in self.plan.jobs for lib in job.libraries for b in lib.binds}
        if self.plan.tool is not None and self.plan.tool.toolkit is not None:
            labels[str(self.plan.tool.toolkit)] = "<cuda>"
        for folder in sorted(labels, key=len, reverse=True):
            text = text.replace(folder, labels[folder])
        return text


def _settled(record: Record) -> bool:
    """Whether the same input would give the same result: not so for a limit, or a failure without a stated error."""
    stated = any(d.severity == "error" for d in record.build.diagnostics)
    return record.failure is None or (record.failure == "compile_error" and stated)


def _nothing_to_compile() -> Record:
    build = Build(ok=True, command=f"(nothing to compile: {MODEL_FILE} is loaded as it is)", seconds=0.0)
    return Record(build=build, evidence=Evidence(), instruction_mix={}, failure=None, reason="", compiler="")


def _box_limits(limits: Limits) -> BoxLimits:
    return BoxLimits(
        memory_bytes=min(limits.memory_bytes, MOST_COMPILE_MEMORY),
        memory_kind="address_space",
        disk_bytes=limits.disk_bytes,
        processes=limits.processes,
        output_bytes=limits.output_bytes,
    )


def _dependencies(path: Path) -> tuple[str, ...]:
    data = read_artefact(path, 16 << 20)
    names = diagnostics.dependencies(data.decode(errors="replace")) if data else ()
    return tuple(os.path.normpath(name) for name in names)


def _dynamic(path: Path) -> elf.Dynamic | None:
    data = read_artefact(path)
    return elf.read(data) if data is not None else None


def _reason(failed: _Result, said: tuple[Diagnostic, ...]) -> str:
    error = next((d for d in said if d.severity == "error"), None)
    if failed.failure != "compile_error" or error is None:
        return failed.reason
    place = error.file if error.line is None else f"{error.file}:{error.line}"
    return f"{place}: {error.text}"
