"""The tasks of KernelBench: read from a checkout, or from the published data set, and chosen by level and number.

Source: https://github.com/ScalingIntelligence/KernelBench and the data set ScalingIntelligence/KernelBench.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2
from pydantic import ValidationError

from hiera_mcp.errors import HieraError, RequestError
from hiera_mcp.model.base import Model, Text

HUB = "https://datasets-server.huggingface.co/rows"
"""Rows of published data sets as JSON: https://huggingface.co/docs/dataset-viewer/rows"""
DATASET = "ScalingIntelligence/KernelBench"
PAGE = 100
"""Rows of one answer; the most that the server gives."""
LEVELS = (1, 2, 3)
"""Built when none is named; level 4 needs models from the network."""
_FILE = re.compile(r"^(\d+)_.+\.py$")
_CHOICE = re.compile(r"^(?:level)?(\d+)/(\d+)(?:_.*)?$")


class Problem(Model):
    """One task."""

    level: int
    number: int
    """Within its level, from 1: the number that its file name begins with."""
    stem: Text
    """Its file name without .py."""
    source: str

    @property
    def name(self) -> str:
        """`level2/76_Name`: unique among all tasks, and the path of its folder in the output."""
        return f"level{self.level}/{self.stem}"


class HubUnreachable(HieraError):
    """The published data set could not be read."""

    kind = "network"


def read_checkout(path: Path, levels: Sequence[int]) -> list[Problem]:
    """The tasks of some levels, by level and number. `path` is a checkout, or the folder KernelBench/ in it.

    Raises:
        RequestError: it is neither, a level is missing, or a file cannot be read.
    """
    folder = _tasks_folder(path)
    found: list[Problem] = []
    for level in levels:
        found += _read_level(folder, level)
    return found


def _tasks_folder(path: Path) -> Path:
    if not path.is_dir():
        raise RequestError(f"There is no folder {path}.", todo="Name a checkout of KernelBench, or huggingface.")
    for folder in (path, path / "KernelBench"):
        if any(child.is_dir() for child in folder.glob("level*")):
            return folder
    raise RequestError(
        f"{path} holds no tasks of KernelBench: neither it nor {path / 'KernelBench'} has a folder level1.",
        todo="Name the checkout, or the folder in which level1, level2, … lie.",
    )


def _read_level(folder: Path, level: int) -> list[Problem]:
    files = [(int(m[1]), p) for p in (folder / f"level{level}").glob("*.py") if (m := _FILE.match(p.name))]
    if not files:
        present = sorted(p.name.removeprefix("level") for p in folder.glob("level*") if p.is_dir())
        raise RequestError(f"{folder} has no tasks of level {level}.", valid=present)
    return [Problem(level=level, number=n, stem=p.stem, source=_text(p)) for n, p in sorted(files)]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise RequestError(f"{path} is not UTF-8 text.", todo="A task is a Python file.") from error


async def read_hub(levels: Sequence[int], url: str = HUB) -> list[Problem]:
    """The same from the published data set, through a server of its rows.

    Raises:
        HubUnreachable: there is no network, or the server answers with an error or with something else.
    """
    found: list[Problem] = []
    try:
        async with httpx2.AsyncClient(timeout=30.0, follow_redirects=True) as http:
            for level in levels:
                found += await _hub_level(http, url, level)
    except httpx2.HTTPError as error:
        why = (str(error) or type(error).__name__).splitlines()[0]
        what = f"The data set {DATASET} cannot be read from {url}: {why}."
        raise HubUnreachable(what, todo="Check the network, or name a checkout of KernelBench instead.") from error
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        what = f"{url} did not answer with rows of {DATASET}: {type(error).__name__}: {error}."
        raise HubUnreachable(what, todo="Name a checkout of KernelBench instead.") from error
    return sorted(found, key=lambda p: (p.level, p.number))


async def _hub_level(http: httpx2.AsyncClient, url: str, level: int) -> list[Problem]:
    rows: list[Any] = []
    total = 1
    while len(rows) < total:
        query = {
            "dataset": DATASET,
            "config": "default",
            "split": f"level_{level}",
            "offset": len(rows),
            "length": PAGE,
        }
        answer = await http.get(url, params=query)
        answer.raise_for_status()
        body = answer.json()
        page: list[Any] = body["rows"]
        total = int(body.get("num_rows_total", len(rows) + len(page))) if page else len(rows)
        rows += page
    return [_of_row(entry["row"]) for entry in rows]


def _of_row(row: dict[str, Any]) -> Problem:
    stem = Path(str(row["name"])).name.removesuffix(".py")  # it becomes a folder's name
    number = int(row["problem_id"])
    stem = stem if stem.startswith(f"{number}_") else f"{number}_{stem}"
    return Problem(level=int(row["level"]), number=number, stem=stem, source=str(row["code"]))


def parse_levels(text: str) -> tuple[int, ...]:
    """`1,3` → (1, 3).

    Raises:
        RequestError: it is something else.
    """
    words = [w.strip() for w in text.split(",")]
    if not all(w.isascii() and w.isdigit() for w in words):
        raise RequestError(f"`{text}` is no list of levels.", todo="Write numbers with commas between them: 1,2,3.")
    return tuple(sorted({int(w) for w in words}))


def parse_choice(text: str) -> tuple[int, int]:
    """`level2/76`, `2/76` or `level2/76_Name` → (2, 76).

    Raises:
        RequestError: it is something else.
    """
    found = _CHOICE.match(text.strip().removesuffix(".py"))
    if not found:
        raise RequestError(f"`{text}` names no task.", todo="Write level and number: level2/76, or 2/76.")
    return int(found[1]), int(found[2])


def chosen(problems: Sequence[Problem], choices: Sequence[tuple[int, int]]) -> list[Problem]:
    """The problems with these levels and numbers, each once and in the problems' own order; all, when none is named.

    Raises:
        RequestError: one of them is not there.
    """
    wanted = set(choices)
    missing = sorted(wanted - {(p.level, p.number) for p in problems})
    if missing:
        level, number = missing[0]
        there = [p.number for p in problems if p.level == level]
        valid = f" Level {level} has the numbers {min(there)} to {max(there)}." if there else ""
        raise RequestError(f"KernelBench has no task {level}/{number} here.{valid}")
    return [p for p in problems if not wanted or (p.level, p.number) in wanted]
