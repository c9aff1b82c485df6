"""Pages of a report as Nsight Compute prints them in CSV: the way without its Python module. Pure.

Raw: a header row, a row of units, one row per launch. Details: one row per metric or rule, named by the launch's ID.
Source: see source_page.py (Nsight Compute CLI documentation, 2025.3).
"""

import csv
from collections.abc import Iterator, Mapping, Sequence

from hiera_mcp.sandbox.profiling.numbers import number
from hiera_mcp.sandbox.profiling.raw import Instruction, Kind, RawLaunch, RawRule
from hiera_mcp.sandbox.profiling.source_page import instructions, places

_KINDS: dict[str, Kind] = {"OPT": "optimization", "WRN": "warning", "INF": "ok", "ERR": "error"}
_SCOPES = {"global": "kernel", "local": "unit"}


def from_pages(raw: str, details: str = "", source: str = "", lines: str = "") -> tuple[RawLaunch, ...]:
    """The launches in the CSV of a report's pages. Lines of ncu or of the program before a header are skipped."""
    rows = _table(raw)
    if len(rows) < 2:
        return ()
    header, units = rows[0], rows[1]
    whole = [row for row in rows[2:] if len(row) == len(header) and row[0]]
    rules, code = rules_by_id(details), instructions(source, places(lines))
    seen = code if len(code) == len(whole) else ((),) * len(whole)
    return tuple(_launch(header, units, row, rules, found) for row, found in zip(whole, seen, strict=True))


def rules_by_id(details: str) -> dict[str, tuple[RawRule, ...]]:
    """ID of a launch → what the rules said of it."""
    rows = _table(details)
    if not rows:
        return {}
    found: dict[str, list[RawRule]] = {}
    for row in rows[1:]:
        cells = dict(zip(rows[0], row, strict=False))
        if cells.get("Rule Name") and cells.get("Rule Description"):
            found.setdefault(cells.get("ID", ""), []).append(_rule(cells))
    return {launch: tuple(rules) for launch, rules in found.items()}


def _rule(cells: Mapping[str, str]) -> RawRule:
    scope = _SCOPES.get(cells.get("Estimated Speedup Type", "").lower(), "unknown")
    return RawRule(
        rule=cells["Rule Name"],
        message=cells["Rule Description"],
        kind=_KINDS.get(cells.get("Rule Type", ""), "none"),
        gain_percent=number(cells.get("Estimated Speedup", "")),
        scope="kernel" if scope == "kernel" else "unit" if scope == "unit" else "unknown",
    )


def _launch(
    header: Sequence[str],
    units: Sequence[str],
    row: Sequence[str],
    rules: Mapping[str, tuple[RawRule, ...]],
    code: tuple[Instruction, ...],
) -> RawLaunch:
    values = {name: value for name, cell in zip(header, row, strict=True) if (value := number(cell)) is not None}
    cells = dict(zip(header, row, strict=True))
    return RawLaunch(
        kernel=cells.get("Kernel Name", ""),
        metrics={name: value for name, value in values.items() if "__" in name or name.startswith("memory_")},
        units={name: unit for name, unit in zip(header, units, strict=False) if unit and name in values},
        rules=rules.get(cells.get("ID", ""), ()),
        instructions=code,
    )


def _table(text: str) -> list[list[str]]:
    return list(csv.reader(_from_header(text)))


def _from_header(text: str) -> Iterator[str]:
    lines = text.splitlines(keepends=True)
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID",')), len(lines))
    yield from lines[start:]
