"""Record what tests/data/sanitizer holds: what compute-sanitizer prints of each kernel there, run as the server runs it.

    python -m scripts.record_sanitizer --out FOLDER [--only NAME,…]
    python -m scripts.record_sanitizer --unpack FOLDER

The first leaves FOLDER/sanitizer.tar.gz, the second puts its content into tests/data/sanitizer/recorded. Kept are the logs
of all four tools (NAME.log) and, in recorded.json, the machine, how each tool ended, its seconds, and what was read. Needs an
NVIDIA GPU, nvcc and compute-sanitizer; `--unpack` needs none of them.
"""

import argparse
import asyncio
import json
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from benchmarks.machine import describe
from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.contracts.build import build_contract
from hiera_mcp.knowledge_base import hardware
from hiera_mcp.model.contract import Contract, Task
from hiera_mcp.model.sanitizer import Sanitized, SanitizeRequest
from hiera_mcp.model.space import spaces_of
from hiera_mcp.model.work import TraceRequest
from hiera_mcp.sandbox.devices import gpus
from hiera_mcp.sandbox.local import LocalExecutor

DATA = Path(__file__).resolve().parents[1] / "tests" / "data" / "sanitizer"
TASK = "double"


async def quiet(message: str, fraction: float | None) -> None:
    """Progress is not shown."""


async def contract_on_this_gpu(executor: LocalExecutor) -> Contract:
    """The contract that the kernels are candidates for."""
    source, gpu = (DATA / "tasks" / f"{TASK}.py").read_text(), gpus()[0]
    row = hardware.gpu_for(gpu.target, gpu.name)
    found = await executor.trace(TraceRequest(source=source, name=TASK), quiet)
    about = Task(name=TASK, source=source)
    return build_contract(about, gpu.target, "float32", found, hardware.peaks(row), row.memory_bytes)


def request(name: str, contract: Contract) -> SanitizeRequest:
    """All tools on one kernel."""
    sources = {"cuda_source.cu": (DATA / "kernels" / f"{name}.cu").read_text()}
    space = spaces_of(contract.target)[0]
    return SanitizeRequest(contract=contract, files=render_files(contract), space=space, sources=sources)


async def record(names: list[str], folder: Path) -> dict[str, Any]:
    """Run the tools on each kernel, keep the logs; what was read, by name."""
    executor = LocalExecutor(cache_dir=Path(tempfile.mkdtemp()) / "cache")
    rows: dict[str, Any] = {}
    try:
        contract = await contract_on_this_gpu(executor)
        for name in names:
            found: Sanitized = await executor.sanitize(request(name, contract), quiet)
            (folder / f"{name}.log").write_text(found.log)
            rows[name] = found.model_dump(mode="json", exclude={"log", "sources_digest"})
            ends = ", ".join(f"{r.tool} {r.status} in {r.seconds:.1f} s {r.note}".rstrip() for r in found.results)
            print(f"{name}: {found.summary}\n    {ends}", flush=True)
    finally:
        await executor.close()
    return rows


def pack(out: Path, only: str) -> None:
    """Record, and write the archive."""
    planted: list[dict[str, str]] = tomllib.loads((DATA / "planted.toml").read_text())["kernel"]
    names = [k["name"] for k in planted if not only or k["name"] in only.split(",")]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        rows = asyncio.run(record(names, folder))
        (folder / "recorded.json").write_text(json.dumps({"machine": describe(), "kernels": rows}, indent=1) + "\n")
        with tarfile.open(out / "sanitizer.tar.gz", "w:gz") as tar:
            tar.add(folder, "recorded")


def unpack(folder: Path) -> None:
    """Put a recorded archive where the tests are."""
    with tarfile.open(folder / "sanitizer.tar.gz") as tar:
        tar.extractall(DATA, filter="data")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path)
    what.add_argument("--unpack", type=Path)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    if args.unpack is not None:
        unpack(args.unpack)
    else:
        pack(args.out, args.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
