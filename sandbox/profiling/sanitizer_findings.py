"""Reports of compute-sanitizer as findings: which are the candidate's, how grave, and how often each place shows. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from hiera_mcp.model.sanitizer import AddressSpace, Finding, SanitizerTool
from hiera_mcp.sandbox.profiling.sanitizer_reports import Place, Report, parse_place, reports

Severity = Literal["error", "warning"]
_ACCESS = re.compile(r"(?:Invalid|Uninitialized) __(global|shared|local)__ ")
_RACE = re.compile(r"(Error|Warning): Race reported between (\w+) access at (.*)")
_OTHER = re.compile(r"and (\w+) access at (.*)")
_HAZARDS = re.compile(r"\[([\d,]+) hazards?\]")
_OURS = re.compile(r"\bcase\d+\.so\b")
"""Part of a host frame in the candidate's library; some versions put it on a line of its own."""
_AT_HOST = re.compile(r"Leaked |Program hit |Host API |Malloc/Free error")
LONGEST = 300
"""Characters of a text."""


@dataclass(frozen=True)
class Reader:
    """Reads the log of one tool on one candidate."""

    tool: SanitizerTool
    sources: Mapping[str, str]
    """The candidate's files by name."""

    def findings(self, log: str) -> tuple[Finding, ...]:
        """What concerns the candidate, each kind at each place once; errors first, then in the order of the log."""
        seen: dict[tuple[object, ...], Finding] = {}
        for found in self._each(log):
            key = (found.severity, found.what, found.kernel, found.file, found.line)
            earlier = seen.get(key)
            seen[key] = found if earlier is None else _again(earlier, found.count)
        return tuple(sorted(seen.values(), key=lambda f: f.severity))

    def _each(self, log: str) -> Iterator[Finding]:
        for report in reports(log):
            race = _RACE.match(report.headline)
            found = self._race(report, race) if race else self._report(report)
            if found is not None:
                yield found

    def _race(self, report: Report, race: re.Match[str]) -> Finding | None:
        first = parse_place(race[3])
        if first is None:
            return None
        others = [m for line in report.body if (m := _OTHER.match(line))]
        kinds = dict.fromkeys((race[2].lower(), *(m[1].lower() for m in others)))
        hazards = sum(int(n.replace(",", "")) for n in _HAZARDS.findall(" ".join(report.body)))
        return self._finding(
            f"race between {' and '.join(kinds)} accesses" if len(kinds) > 1 else f"race of {race[2].lower()} accesses",
            (first,),
            severity="error" if race[1] == "Error" else "warning",
            space="shared",
            count=max(1, hazards),
            detail="; ".join(m[0] for m in others),
        )

    def _report(self, report: Report) -> Finding | None:
        """Of what a kernel did all is kept; of what was done on the host, what the candidate's library did."""
        access, facts = _ACCESS.match(report.headline), report.facts
        if report.places and not _AT_HOST.match(report.headline):
            kind = next((f", {k}" for k in ("out of bounds", "misaligned") if f"is {k}" in facts), "")
            space = cast("AddressSpace", access[1] if access else "")
            return self._finding(report.headline + kind, report.places, "error", space, detail=facts)
        ours = next((line for line in report.body if _OURS.search(line)), None)
        return None if ours is None else self._at_host(report, ours)

    def _at_host(self, report: Report, frame: str) -> Finding:
        what = re.sub(r" at 0x[0-9a-f]+", "", report.headline)
        return self._finding(
            what, (), "warning", "host", detail=f"called by {frame.removeprefix('Host Frame:').strip()}"
        )

    def _finding(
        self,
        what: str,
        places: tuple[Place, ...],
        severity: Severity,
        space: AddressSpace = "",
        count: int = 1,
        detail: str = "",
    ) -> Finding:
        """At the innermost place that lies in the candidate's own files, if there is one."""
        own = next((p for p in places if p.file in self.sources), None)
        place = own or (places[0] if places else Place("", "", None))
        return Finding(
            tool=self.tool,
            severity=severity if own or self.tool == "memcheck" else "warning",
            what=what[:LONGEST],
            kernel=places[-1].function[:LONGEST] if places else "",
            file=place.file,
            line=place.line,
            text=self._line(place),
            space=space,
            count=count,
            detail=detail[:LONGEST],
        )

    def _line(self, place: Place) -> str:
        lines = self.sources.get(place.file, "").splitlines()
        inside = place.line is not None and 0 < place.line <= len(lines)
        return lines[place.line - 1].strip()[:LONGEST] if inside and place.line else ""


def _again(found: Finding, count: int) -> Finding:
    return found.model_copy(update={"count": found.count + count})
