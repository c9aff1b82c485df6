"""What compute-sanitizer said of candidates, as an agent reads it. Pure."""

from hiera_mcp.model.base import Model
from hiera_mcp.model.sanitizer import MEMORY_ERROR, Finding, Sanitized, place_of

MOST_FINDINGS = 8
LINE_CHARACTERS = 100


class SanitizerView(Model):
    """What compute-sanitizer says."""

    tools: dict[str, str]
    """Tool → how it ended."""
    findings: tuple[str, ...]
    uri: str
    """All of it; `/log` behind it gives the tools' own output."""


def with_check(reason: str, found: Sanitized | None) -> str:
    """A candidate's reason with what was found; a bad access comes first, since nobody must miss it."""
    if found is None:
        return reason
    if found.breaks_memory:
        todo = "Correct it and submit it again"
        return f"{MEMORY_ERROR}, so it cannot be the best: {found.summary}. {todo}. Before: {reason}"
    return f"{reason}; compute-sanitizer: {found.summary}"


def sanitizer_view(found: Sanitized, candidate_id: str) -> SanitizerView:
    """A result as an agent reads it."""
    shown = tuple(_line(f) for f in found.findings[:MOST_FINDINGS])
    rest = len(found.findings) - len(shown)
    return SanitizerView(
        tools={r.tool: f"{r.status}: {r.note}" if r.note else r.status for r in found.results},
        findings=(*shown, f"and {rest} more") if rest else shown,
        uri=f"hiera://candidates/{candidate_id}/sanitizer",
    )


def _line(finding: Finding) -> str:
    told = (finding.detail[:LINE_CHARACTERS], finding.text[:LINE_CHARACTERS])
    return " | ".join((place_of(finding), *filter(None, told)))
