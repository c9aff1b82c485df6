"""What compute-sanitizer saw of a candidate: accesses out of bounds, races, uninitialised reads, misused barriers."""

from typing import Literal, get_args

from pydantic import Field

from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.evaluation import Device
from hiera_mcp.model.work import CheckRequest

SanitizerTool = Literal["memcheck", "racecheck", "initcheck", "synccheck"]
SANITIZERS: tuple[SanitizerTool, ...] = get_args(SanitizerTool)
"""In the order in which they are run: the others say little of a candidate that memcheck does not find clean."""

SanitizerStatus = Literal[
    "clean", "findings", "cpu", "missing", "unsupported", "mismatch", "timeout", "candidate_failed", "skipped", "failed"
]
"""How one tool ended. missing: no compute-sanitizer here; unsupported: it does not reach the device, as in some containers;
mismatch: it and the driver do not fit; skipped: another tool's result made it pointless."""

MEMORY_ERROR = "MEMORY ERROR"
"""With this begins the reason of a candidate that passed and cannot be the best for what memcheck saw."""

AddressSpace = Literal["global", "shared", "local", "host", ""]
"""Where the access went; empty where that is no matter of an access."""


class Finding(Model):
    """One kind of thing at one place, however often it was seen."""

    tool: SanitizerTool
    severity: Literal["error", "warning"]
    """error: the candidate is at fault, by NVIDIA's word; warning: it may be harmless."""
    what: Text
    """In the tool's words, as `Invalid __global__ write of size 4 bytes`."""
    kernel: str
    """Demangled; empty when no kernel did it."""
    file: str
    """Name of the source file; empty where the binary does not tell."""
    line: int | None = None
    text: str = ""
    """The line itself, where the file is the candidate's."""
    space: AddressSpace = ""
    count: int = 1
    """How often it was reported; the tool stops printing after some hundred reports of all kinds together."""
    detail: str = ""
    """Of the first report: the thread, the address and what lies there, or the other access of a race."""

    @property
    def breaks_memory(self) -> bool:
        """Whether a kernel was seen to touch memory that is not the candidate's to touch."""
        return self.tool == "memcheck" and self.severity == "error" and bool(self.space)


class ToolResult(Model):
    """How one tool of compute-sanitizer ended."""

    tool: SanitizerTool
    status: SanitizerStatus
    note: str = ""
    """Why there is no result and what to do; else what limits it."""
    seconds: float = 0.0


class Sanitized(Model):
    """What compute-sanitizer said of a candidate."""

    results: tuple[ToolResult, ...]
    findings: tuple[Finding, ...] = ()
    """Errors first."""
    version: str = ""
    """Of compute-sanitizer; empty where it is missing."""
    device: Device | None = None
    sources_digest: str = ""
    log: str = ""
    """The tools' own output, one after another."""

    @property
    def breaks_memory(self) -> bool:
        """Whether the candidate must not be handed out: memcheck saw one of its kernels out of bounds or misaligned."""
        return any(f.breaks_memory for f in self.findings)

    @property
    def summary(self) -> str:
        """One line: the first finding, or how each tool ended."""
        first = next(iter(self.findings), None)
        if first is not None:
            more = f" (and {len(self.findings) - 1} more)" if len(self.findings) > 1 else ""
            return place_of(first) + more
        ends = dict.fromkeys(r.status for r in self.results)
        return "; ".join(f"{end}: {', '.join(r.tool for r in self.results if r.status == end)}" for end in ends)


class SanitizeRequest(CheckRequest):
    """Run tools of compute-sanitizer around calls of a candidate."""

    tools: tuple[SanitizerTool, ...] = Field(default=SANITIZERS, min_length=1)
    tool_s: float = Field(default=120.0, gt=0)
    """Seconds after which a tool is ended."""
    device: str = "auto"
    """`auto`, or `cuda:N`."""


def place_of(finding: Finding) -> str:
    """A finding as one line: tool, what, where, how often."""
    where = f"{finding.file}:{finding.line}" if finding.file else "an unknown line"
    kernel = f" in {finding.kernel[:60]}" if finding.kernel else ""
    times = f", {finding.count} times" if finding.count > 1 else ""
    return f"{finding.tool} {finding.severity}: {finding.what} at {where}{kernel}{times}"
