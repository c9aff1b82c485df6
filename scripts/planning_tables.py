"""Writes the generated tables into docs/planning.md: `python scripts/planning_tables.py [--tasks]`.

With --tasks the shipped tasks are traced too, in the sandbox, and their scores are written; this takes a minute.
"""

import argparse
import tempfile
from pathlib import Path

import anyio

from hiera_mcp.contracts.build import build_contract
from hiera_mcp.knowledge_base import hardware
from hiera_mcp.model.contract import Task
from hiera_mcp.model.work import Trace, TraceRequest
from hiera_mcp.planning.evidence import Evidence, gather
from hiera_mcp.planning.tables import TARGET, task_table, with_sections
from hiera_mcp.sandbox.local import LocalExecutor

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "planning.md"
PROBE_BYTES = 1 << 16
"""Nothing in the table depends on what the reference computes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", action="store_true", help="trace the shipped tasks, and write their scores too")
    text = with_sections(PAGE.read_text(encoding="utf-8"))
    if parser.parse_args().tasks:
        text = with_sections(text, {"tasks": task_table(anyio.run(_traced))})
    PAGE.write_text(text, encoding="utf-8")
    print(f"{PAGE.name} is up to date")


def tasks() -> dict[str, Path]:
    """The references that are shipped, by name."""
    folders = sorted(ROOT.glob("examples/*/task.py"))
    return {p.parent.name: p for p in folders} | {p.stem: p for p in sorted(ROOT.glob("examples/tasks/*.py"))}


def request_of(name: str) -> TraceRequest:
    """How a shipped task is traced."""
    source = tasks()[name].read_text(encoding="utf-8")
    return TraceRequest(source=source, name=name, probe_bytes=PROBE_BYTES, probe_s=0.0)


def known(request: TraceRequest, trace: Trace) -> Evidence:
    """What is known of a traced task before anything is written for it."""
    gpu = hardware.gpu_for(TARGET)
    task = Task(name=request.name, source=request.source)
    contract = build_contract(task, TARGET, "float32", trace, hardware.peaks(gpu), gpu.memory_bytes, device=gpu.name)
    return gather(contract, gpu=gpu)


async def _traced() -> dict[str, Evidence]:
    found: dict[str, Evidence] = {}
    with tempfile.TemporaryDirectory() as cache:
        executor = LocalExecutor(cache_dir=Path(cache))
        for name in tasks():
            request = request_of(name)
            found[name] = known(request, await executor.trace(request, _quiet))
        await executor.close()
    return found


async def _quiet(message: str, fraction: float | None) -> None:
    pass


if __name__ == "__main__":
    main()
