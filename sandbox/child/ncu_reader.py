"""Read a report of Nsight Compute with NVIDIA's own reader, and write what it holds as JSON.

    python -P -m hiera_mcp.sandbox.child.ncu_reader --report FILE --result FILE [--reader FOLDER]

It runs in a box of its own: the report was written beside untrusted code, and the reader is a large native library. Per
kernel: all metrics that are numbers, the findings of the rules, and one record per machine instruction with its place in
the source, its samples, and its values of `PER_INSTRUCTION`. Absent values are left out.

The reader is `ncu_report`, from `--reader` (the folder extras/python of the installation that wrote the report) or the
wheel of that name.
"""

import argparse
import importlib
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
"""Prefix of the sampler's metrics: one per stall reason, counted per instruction."""
NOT_ISSUED = "_not_issued"
"""Suffix of those that count only samples in which the scheduler issued nothing; left out."""
PER_INSTRUCTION = {
    "inst_executed": "executed",
    "thread_inst_executed_true": "threads",
    "memory_l2_theoretical_sectors_global": "sectors",
    "memory_l2_theoretical_sectors_global_ideal": "sectors_ideal",
    "memory_l1_wavefronts_shared": "wavefronts",
    "memory_l1_wavefronts_shared_ideal": "wavefronts_ideal",
}
"""ncu's per-instruction metric → our name."""
SCOPES = ("unknown", "unit", "kernel")
"""By NVIDIA's number of the kind of an estimate: 1 is local to a unit, 2 is about the whole kernel."""
KINDS = ("none", "ok", "optimization", "warning", "error")


def read(report: Any) -> dict[str, Any]:
    """What an opened report holds, as plain data."""
    return {"launches": [launch(action) for part in report for action in part]}


def launch(action: Any) -> dict[str, Any]:
    """One profiled kernel."""
    found = [action.metric_by_name(name) for name in action.metric_names()]
    scalars = {m.name(): m for m in found if m is not None and _number(m) is not None}
    return {
        "kernel": action.name(action.NameBase_DEMANGLED),
        "metrics": {name: _number(m) for name, m in scalars.items()},
        "units": {name: unit for name, m in scalars.items() if (unit := m.unit())},
        "rules": [rule for result in action.rule_results_as_dicts() if (rule := _rule(result))],
        "instructions": list(_instructions(action)),
    }


def _number(metric: Any) -> float | None:
    """The metric's value; None when it has none, is a text, or is not a finite number."""
    if not metric.has_value() or metric.kind() in (metric.ValueKind_STRING, metric.ValueKind_UNKNOWN):
        return None
    value = metric.value()
    return value if isinstance(value, int | float) and math.isfinite(value) else None


def _rule(result: dict[str, Any]) -> dict[str, Any] | None:
    said: dict[str, Any] = result.get("rule_message") or {}
    if not said.get("message"):
        return None
    estimate: dict[str, Any] = result.get("speedup_estimation") or {}
    kind = int(said.get("type", 0))
    return {
        "rule": result["rule_identifier"],
        "title": said.get("title", ""),
        "message": said["message"],
        "kind": KINDS[kind] if kind < len(KINDS) else "none",
        "gain_percent": estimate.get("speedup"),
        "scope": SCOPES[int(estimate.get("type", 0))],
    }


def _instructions(action: Any) -> Iterator[dict[str, Any]]:
    values = {ours: _by_address(action, theirs) for theirs, ours in PER_INSTRUCTION.items()}
    names = [n for n in action.metric_names() if n.startswith(SAMPLES) and not n.endswith(NOT_ISSUED)]
    stalls = {name.removeprefix(SAMPLES): _by_address(action, name) for name in names}
    addresses = {address for table in (*values.values(), *stalls.values()) for address in table}
    for address in sorted(addresses):
        place = action.source_info(address)
        yield {
            "address": address,
            "sass": action.sass_by_pc(address),
            "file": place.file_name() if place else "",
            "line": place.line() if place else 0,
            **{name: table[address] for name, table in values.items() if address in table},
            "stalls": {name: table[address] for name, table in stalls.items() if table.get(address)},
        }


def _by_address(action: Any, name: str) -> dict[int, float]:
    metric = action.metric_by_name(name)
    if metric is None or not metric.has_correlation_ids():
        return {}
    addresses = metric.correlation_ids()
    return {addresses.as_uint64(i): metric.as_double(i) for i in range(metric.num_instances())}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--result", type=Path, required=True)
    parser.add_argument("--reader", type=Path)
    args = parser.parse_args()
    if args.reader is not None:
        sys.path.insert(0, str(args.reader))
    reader = importlib.import_module("ncu_report")
    args.result.write_text(json.dumps(read(reader.load_report(str(args.report)))))


if __name__ == "__main__":
    main()
