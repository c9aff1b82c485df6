"""Run the tools of compute-sanitizer around calls of a candidate, one after another, each inside a box of its own."""

import time
from dataclasses import replace
from pathlib import Path

from hiera_mcp.errors import SandboxError
from hiera_mcp.model.base import digest
from hiera_mcp.model.evaluation import Device
from hiera_mcp.model.sanitizer import Finding, Sanitized, SanitizeRequest, SanitizerStatus, SanitizerTool, ToolResult
from hiera_mcp.sandbox.compilers.build import Built
from hiera_mcp.sandbox.devices import device_for
from hiera_mcp.sandbox.doctor import tool_version
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.sandbox.launcher.building import build
from hiera_mcp.sandbox.launcher.host import Host, device_of
from hiera_mcp.sandbox.launcher.judging import Checker, Ended, Job, run
from hiera_mcp.sandbox.launcher.verdict import not_built, tail
from hiera_mcp.sandbox.profiling import compute_sanitizer
from hiera_mcp.sandbox.profiling.sanitizer_failures import MISSING, MORE, NO_GPU, ON_CPU, SKIPPED, TIMEOUT, failure
from hiera_mcp.sandbox.profiling.sanitizer_findings import Reader
from hiera_mcp.sandbox.profiling.sanitizer_reports import total, unprinted

ENDS_ALL: frozenset[SanitizerStatus] = frozenset({"missing", "unsupported", "mismatch"})
"""After one of these the other tools would end in the same way."""


async def sanitize(host: Host, request: SanitizeRequest, notify: Notify) -> Sanitized:
    """What the tools say; a host without them, or without a device, is told as their status."""
    target = request.contract.target
    device = device_for(target, request.device)
    built = await build(host, request, notify)
    here = device_of(host, target, device)
    program = compute_sanitizer.find()
    obstacle = _obstacle(built, here, device, program)
    if obstacle is not None or device is None or program is None:
        status, why = obstacle or ("missing", MISSING)
        results = tuple(ToolResult(tool=t, status=status, note=why) for t in request.tools)
        return Sanitized(results=results, device=here, sources_digest=digest(dict(request.sources)))
    limits = request.limits.model_copy(update={"total_s": request.tool_s})
    course = Course(Job(host, request.model_copy(update={"limits": limits}), built, device, notify), program)
    for tool in request.tools:
        await course.take(tool)
    return course.result(await tool_version(compute_sanitizer.NAME))


def _obstacle(
    built: Built, here: Device, device: str | None, program: Path | None
) -> tuple[SanitizerStatus, str] | None:
    """Why no tool can be run at all."""
    refused = not_built(built, here)
    if refused is not None:
        return "candidate_failed", refused.reason
    if device == "cpu":
        return "cpu", ON_CPU
    if device is None:
        return "unsupported", NO_GPU
    return ("missing", MISSING) if program is None else None


class Course:
    """The tools on one candidate, in turn."""

    def __init__(self, job: Job, program: Path) -> None:
        self._job = job
        self._program = program
        self._results: list[ToolResult] = []
        self._findings: list[Finding] = []
        self._logs: list[str] = []
        self._facts: dict[str, str] = {}

    async def take(self, tool: SanitizerTool) -> None:
        """Run one tool, or say why that is pointless."""
        skipped = self._pointless(tool)
        if skipped is not None:
            self._results.append(skipped)
            return
        await self._job.notify(f"{tool} of compute-sanitizer", None)
        started = time.monotonic()
        try:
            ended = await run(replace(self._job, checker=Checker(self._program, tool)))
        except SandboxError as e:
            self._results.append(ToolResult(tool=tool, status="failed", note=str(e)))
            return
        self._facts = ended.ready.facts
        self._logs.append(f"==== {tool} ====\n{ended.checker_log}")
        found = Reader(tool, self._job.request.sources).findings(ended.checker_log)
        self._findings += found
        result = judged(tool, ended, found)
        self._results.append(result.model_copy(update={"seconds": time.monotonic() - started}))

    def _pointless(self, tool: SanitizerTool) -> ToolResult | None:
        ended = next((r for r in self._results if r.status in ENDS_ALL), None)
        if ended is not None:
            return ended.model_copy(update={"tool": tool, "seconds": 0.0})
        if any(f.breaks_memory for f in self._findings):
            return ToolResult(tool=tool, status="skipped", note=SKIPPED)
        return None

    def result(self, version: str) -> Sanitized:
        """What all of them said so far; `version` is that of compute-sanitizer."""
        job = self._job
        return Sanitized(
            results=tuple(self._results),
            findings=tuple(sorted(self._findings, key=lambda f: f.severity)),
            version=version,
            device=device_of(job.host, job.request.contract.target, job.device).model_copy(update=self._facts),
            sources_digest=digest(dict(job.request.sources)),
            log="\n".join(self._logs),
        )


def judged(tool: SanitizerTool, ended: Ended, found: tuple[Finding, ...]) -> ToolResult:
    """How a tool ended. What it found counts even where it did not get to its end."""
    log = ended.checker_log
    if found:
        return ToolResult(tool=tool, status="findings", note=MORE if unprinted(log) else "")
    if ended.deadline is not None or ended.report.outcome == "timeout":
        return ToolResult(tool=tool, status="timeout", note=f"{TIMEOUT} ({ended.deadline or ended.report.reason})")
    reached_end = total(log) is not None
    status, note = ("clean", "") if reached_end else failure(f"{log}\n{ended.outcome.output}")
    if ended.report.outcome != "passed" and status in ("clean", "failed"):
        status, note = "candidate_failed", _how_it_failed(ended)
    return ToolResult(tool=tool, status=status, note=note)


def _how_it_failed(ended: Ended) -> str:
    words = tail(ended.outcome.output)
    said = f" Its last output: {words}" if words else ""
    why = f"{ended.report.outcome.replace('_', ' ')}: {ended.report.reason}"
    return f"The candidate did not end well under it ({why}).{said}"
