"""Compile a candidate and check its space: the first half of every evaluation, and all of a check."""

import contextlib
import os

from hiera_mcp.model.work import CheckReport, CheckRequest
from hiera_mcp.sandbox import evidence
from hiera_mcp.sandbox.compilers import build as compilers
from hiera_mcp.sandbox.compilers.build import Built
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.sandbox.launcher.host import Host, device_of


async def build(host: Host, request: CheckRequest, notify: Notify) -> Built:
    """Build all cases, as many compilers at once as there are processors, and none while the processors are measured."""
    isolation = host.isolation
    async with host.compile_slots, host.locks.loading(notify):
        built = await compilers.build(request, isolation, host.cache, notify)
    with contextlib.suppress(FileNotFoundError):
        os.utime(built.folder)  # the cache is pruned by last use
    return built


async def check(host: Host, request: CheckRequest, notify: Notify) -> CheckReport:
    """Build and look; nothing of the candidate runs."""
    built = await build(host, request, notify)
    return CheckReport(
        build=built.build,
        space_findings=built.findings,
        instruction_mix=dict(built.instruction_mix),
        notes=evidence.notes(request.contract, built),
        device=device_of(host, request.contract.target, None).model_copy(update={"compiler": built.compiler or None}),
    )
