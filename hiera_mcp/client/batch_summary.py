"""The summary of many contracts: as JSON, as Markdown, and in figures by level. Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from hiera_mcp.client.batch import Row

LONGEST_NOTE = 160
"""Characters of a note in a table."""
HEAD = (
    "task",
    "contract",
    "parameters",
    "operators",
    "FLOPs",
    "bytes",
    "FLOP/byte",
    "floor [s]",
    "bound",
    "passes without work",
    "seconds",
    "notes",
)


@dataclass(frozen=True)
class Level:
    """The tasks of one level together."""

    level: int
    built: int
    failed: int
    seconds: float
    """Sum over its tasks; those built at the same time count each."""


def by_level(rows: Sequence[Row]) -> list[Level]:
    """Figures of each level that has tasks."""
    return [_level(n, [r for r in rows if r.level == n]) for n in sorted({r.level for r in rows})]


def _level(level: int, rows: Sequence[Row]) -> Level:
    failed = sum(bool(r.error) for r in rows)
    return Level(level, len(rows) - failed, failed, sum(r.seconds for r in rows))


def as_json(rows: Sequence[Row]) -> str:
    """`{"levels": […], "tasks": […]}`."""
    levels = [vars(level) for level in by_level(rows)]
    tasks = [r.model_dump(mode="json") for r in rows]
    return json.dumps({"levels": levels, "tasks": tasks}, indent=1, ensure_ascii=False) + "\n"


def as_markdown(rows: Sequence[Row]) -> str:
    """A table by level, one of all contracts, and the failures."""
    levels = [(str(v.level), str(v.built), str(v.failed), f"{v.seconds:.1f}") for v in by_level(rows)]
    built = [_cells(r) for r in rows if not r.error]
    failed = [(r.task, _one_line(r.error, 1000)) for r in rows if r.error]
    parts = ["# Contracts", *_table(("level", "built", "failed", "seconds"), levels), "", *_table(HEAD, built)]
    if failed:
        parts += ["", "## Failures", "", *_table(("task", "error"), failed)]
    return "\n".join(parts) + "\n"


def _cells(row: Row) -> tuple[str, ...]:
    figures = (f"{row.flops:.4g}", f"{row.bytes:.4g}", f"{row.intensity:.4g}", f"{row.floor_s:.3g}")
    notes = "; ".join(_one_line(n, LONGEST_NOTE) for n in row.notes)
    counts = (str(row.parameters), str(row.operators))
    return (row.task, row.contract_id, *counts, *figures, row.bound, row.degeneracy, f"{row.seconds:.2f}", notes)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["", *("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)]


def _one_line(text: str, longest: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 2] + " …"
