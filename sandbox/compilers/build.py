"""Build a candidate: compile every case in a box, read what came out, remember it by content."""

import dataclasses
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import hiera_mcp
from hiera_mcp.model.base import digest
from hiera_mcp.model.evaluation import Build, SpaceFinding
from hiera_mcp.model.space import Target
from hiera_mcp.model.work import CheckRequest
from hiera_mcp.sandbox.compilers import candidate
from hiera_mcp.sandbox.compilers.base import Compiler, Failure, Tool
from hiera_mcp.sandbox.compilers.cache import BuildCache, Record
from hiera_mcp.sandbox.compilers.candidate import Plan
from hiera_mcp.sandbox.compilers.compile import Compiled, Site, compile_cases
from hiera_mcp.sandbox.compilers.gxx import GXX
from hiera_mcp.sandbox.compilers.inspect import NOTHING_SEEN, demangle, look_into
from hiera_mcp.sandbox.compilers.nvcc import NVCC
from hiera_mcp.sandbox.compilers.report import nothing_to_compile, settled
from hiera_mcp.sandbox.compilers.report import record as report
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.sandbox.isolation.box import Isolation
from hiera_mcp.sandbox.space import findings

COMPILERS: tuple[Compiler, ...] = (GXX, NVCC)
"""One per platform. A new compiler is a module like gxx.py and an entry here."""

CACHE_FORMAT = 3
"""Part of every key: count it up when a build of the same input would be remembered differently."""


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
        record = await _built(plan, request, isolation, cache, key, notify)
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


def _key(plan: Plan, isolation: Isolation) -> str:
    """Everything that the result depends on, and nothing else."""
    commands = [plan.compiler.command(plan.tool, job) for job in plan.jobs] if plan.compiler and plan.tool else []
    tool = (plan.tool.version, plan.tool.machine) if plan.tool else ()
    versions = (CACHE_FORMAT, hiera_mcp.__version__, platform.machine(), isolation.name)
    libraries = sorted({(lib.name, lib.version) for job in plan.jobs for lib in job.libraries})
    return digest([versions, tool, libraries, commands, plan.files, plan.loaded], length=40)


async def _built(
    plan: Plan, request: CheckRequest, isolation: Isolation, cache: BuildCache, key: str, notify: Notify
) -> Record:
    """Build what is not in the cache, and keep it when the result would be the same again."""
    loaded = {name: text.encode(errors="replace") for name, text in plan.loaded.items()}
    if plan.compiler is None or plan.tool is None:
        record = nothing_to_compile()
        cache.store(key, record, loaded)
        return record
    with cache.scratch() as work:
        for name, text in plan.files.items():
            (work / name).write_text(text, errors="replace", newline="")
        site = Site(isolation, work, request.limits)
        record, cases = await _compiled(plan, plan.compiler, plan.tool, site, notify)
    if settled(record):
        objects = {} if record.failure else {case.job.output: case.shared_object for case in cases} | loaded
        cache.store(key, record, objects)
    return record


async def _compiled(
    plan: Plan, compiler: Compiler, tool: Tool, site: Site, notify: Notify
) -> tuple[Record, tuple[Compiled, ...]]:
    started = time.monotonic()
    cases = await compile_cases(compiler, tool, plan.jobs, site, notify)
    seconds = time.monotonic() - started
    if cases[0].failure:
        return report(plan, compiler, tool, cases, (), NOTHING_SEEN, seconds), cases
    kernels = await demangle(site.isolation, compiler.kernels(cases[0].log), site.work, site.box_limits)
    insight = await look_into(site.isolation, tool, plan.jobs, site.work, site.box_limits)
    return report(plan, compiler, tool, cases, kernels, insight, seconds), cases
