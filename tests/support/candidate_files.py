"""Candidates kept as files: what they do in the first line, `key: value` lines below it, then their code."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hiera_mcp.model.contract import Precision
from hiera_mcp.model.evaluation import Status
from hiera_mcp.model.space import Space, Target

_LINE = re.compile(r"(?://|#) (\w+): (.+)")
_SPACES = {
    ".cpp": {"pure": Space.CPP, "libraries": Space.CPP_LIBRARIES},
    ".cu": {"pure": Space.CUDA, "libraries": Space.CUDA_LIBRARIES},
}
_PRECISIONS: tuple[Precision, ...] = ("float64", "float32", "float16", "bfloat16")


@dataclass(frozen=True)
class CandidateFile:
    """One candidate.

    Attributes:
        path: the file.
        facts: its head: `task`, and where they apply `space` (libraries), `precision`, `tf32` (allowed), `needs` (a
            compute capability), `status` and `seen` (how it must end, and what the reason must name; ` | ` is between
            alternatives, for races).
    """

    path: Path
    facts: dict[str, str]

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def code(self) -> str:
        return self.path.read_text()

    @property
    def python(self) -> bool:
        """Whether it is a model_new.py."""
        return self.path.suffix == ".py"

    @property
    def precision(self) -> Precision:
        return next(p for p in _PRECISIONS if p == self.facts.get("precision", "float32"))

    @property
    def tf32(self) -> bool:
        return self.facts.get("tf32") == "allowed"

    @property
    def space(self) -> Space | None:
        """None for a ModelNew, whose space is the largest of its target."""
        return None if self.python else _SPACES[self.path.suffix][self.facts.get("space", "pure")]

    @property
    def statuses(self) -> tuple[Status, ...]:
        """How it may end."""
        return tuple(Status(one) for one in self.facts.get("status", "passed").split(" | "))

    def is_seen_in(self, reason: str) -> bool:
        """Whether a reason names what it must."""
        return any(words in reason for words in self.facts.get("seen", "").split(" | "))

    def runs_on(self, target: Target) -> bool:
        """Whether a GPU target has what it needs."""
        major, _, minor = self.facts.get("needs", "0.0").partition(".")
        return int(re.sub(r"\D", "", target)) >= 10 * int(major) + int(minor)

    @property
    def contract(self) -> tuple[str, Precision, bool]:
        """Those with the same contract share a warm judge."""
        return (self.facts["task"], self.precision, self.tf32)


def candidate_files(folders: Iterable[Path], *suffixes: str) -> list[CandidateFile]:
    """The candidates in these folders, those of one contract after another."""
    paths = (path for folder in folders for path in folder.iterdir() if path.suffix in suffixes)
    found = [CandidateFile(path, head(path.read_text())) for path in paths]
    return sorted(found, key=lambda c: (c.contract, c.name))


def head(text: str) -> dict[str, str]:
    """The `key: value` lines right below the first one."""
    facts: dict[str, str] = {}
    for line in text.splitlines()[1:]:
        found = _LINE.fullmatch(line)
        if found is None:
            break
        facts[found[1]] = found[2]
    return facts
