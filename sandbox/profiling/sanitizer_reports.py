"""What compute-sanitizer printed, cut into its reports. Pure.

    ========= Invalid __global__ write of size 4 bytes
    =========     at scale(const float *, float *)+0x90 in cuda_source.cu:12
    =========     by thread (31,0,0) in block (7,0,0)
    =========     Access to 0x7f3c7ec00400 is out of bounds
    =========     and is 1 bytes after the nearest allocation at 0x7f3c7ec00000 of size 1,024 bytes
    =========         Device Frame: caller()+0x30 in cuda_source.cu:44
    =========     Saved host backtrace up to driver entry point at kernel launch time
    =========         Host Frame: hiera_run [0xadb6] in case0.so

A line that is indented belongs to the headline above it. Older versions begin the line of the address with `Address`; until 2022 a place was written `at 0x90 in FILE:12:FUNCTION`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PREFIX = "========="
_NO_REPORT = re.compile(r"COMPUTE-SANITIZER|[A-Z ]*SUMMARY:|Target application|Program exited|This tool")
_PLACES = (
    re.compile(r"(?P<function>.*?)[+:]0x[0-9a-f]+(?: in (?P<file>.+?):(?P<line>\d+))?(?: \[.*\])?$"),
    re.compile(r"0x[0-9a-f]+ in (?P<file>[^:]+):(?P<line>\d+):(?P<function>.*?)(?: \[.*\])?$"),
    re.compile(r"0x[0-9a-f]+ in (?P<function>.*?)(?: \[.*\])?$"),
)


@dataclass(frozen=True)
class Place:
    """Where in a kernel."""

    function: str
    file: str
    """Without its folder; empty where the binary has no lines."""
    line: int | None


@dataclass(frozen=True)
class Report:
    """One report: its headline and what is indented below it."""

    headline: str
    body: tuple[str, ...]

    @property
    def places(self) -> tuple[Place, ...]:
        """In kernels: of the access, then of those who called it."""
        texts = (self._after(line, "at ") or self._after(line, "Device Frame:") for line in self.body)
        return tuple(p for text in texts if text and (p := parse_place(text)) is not None)

    @property
    def facts(self) -> str:
        """The thread, the address and what lies there, as one line."""
        told = (line for line in self.body if line.startswith(("by thread", "Address", "Access to", "and is")))
        return " ".join(told)

    @staticmethod
    def _after(line: str, start: str) -> str:
        return line.removeprefix(start).strip() if line.startswith(start) else ""


def reports(log: str) -> tuple[Report, ...]:
    """All reports of a log, in their order; what the target itself printed is passed over."""
    return tuple(Report(head, tuple(body)) for head, body in _cut(log) if not _NO_REPORT.match(head))


def parse_place(text: str) -> Place | None:
    """`scale(float *)+0x90 in cuda_source.cu:12`, or as it was written before 2023; None for anything else."""
    for pattern in reversed(_PLACES) if text.startswith("0x") else _PLACES[:1]:
        m = pattern.match(text)
        if m and not (pattern is _PLACES[2] and _PLACES[1].match(text)):
            found = m.groupdict()
            line = found.get("line")
            return Place(found["function"].strip(), _name(found.get("file") or ""), int(line) if line else None)
    return None


def total(log: str) -> int | None:
    """How many errors or hazards the tool counted, whether it printed them or not; None when it did not get to its end."""
    m = re.search(rf"^{PREFIX} (?:ERROR|RACECHECK) SUMMARY: ([\d,]+) (?:error|hazard)", log, re.MULTILINE)
    return int(m[1].replace(",", "")) if m else None


def unprinted(log: str) -> bool:
    """Whether the tool says that it stopped printing."""
    return re.search(r"were not printed|print-limit", log) is not None


def _cut(log: str) -> Iterator[tuple[str, Sequence[str]]]:
    head, body = "", list[str]()
    for line in log.splitlines():
        if not line.startswith(PREFIX):
            continue
        rest = line.removeprefix(PREFIX)
        if rest.startswith("     "):
            body.append(rest.strip())
            continue
        if head:
            yield head, body
        head, body = rest.strip(), []
    if head:
        yield head, body


def _name(path: str) -> str:
    return path.rpartition("/")[2]
