"""One task in each implementation space, verified and timed against eager PyTorch on a GPU.

    python -m benchmarks.spaces_on_gpu [--out benchmarks/results/spaces_on_gpu.json]

Drives the real server over stdio with the folders examples/cuda_*; needs a host with an NVIDIA GPU.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.machine import describe
from hiera_mcp.cli.connection import connected
from hiera_mcp.client.drive import drive
from hiera_mcp.client.events import Event, Progress
from hiera_mcp.client.folder import read_folder
from hiera_mcp.client.report import RunReport
from hiera_mcp.settings import from_environment

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("cuda_rmsnorm_silu", "cuda_libraries_linear_relu", "cuda_pytorch_mlp_gelu")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "spaces_on_gpu.json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        reports = asyncio.run(_reports(Path(data)))
    runs = [_row(report) for report in reports]
    result = {"command": "python -m benchmarks.spaces_on_gpu", "machine": describe(), "runs": runs}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if all(c.status == "passed" for report in reports for c in report.run.candidates) else 1


async def _reports(data: Path) -> list[RunReport]:
    settings = replace(from_environment(), data_dir=data)
    async with connected(settings) as client:
        return [await drive(client, read_folder(ROOT / "examples" / name), _tell) for name in FOLDERS]


def _tell(event: Event) -> None:
    if not isinstance(event, Progress):
        print(event, file=sys.stderr)


def _row(report: RunReport) -> dict[str, object]:
    contract = report.contract
    return {
        "task": contract.task,
        "target": contract.target,
        "floor_s": contract.floor.seconds,
        "floor": contract.floor.arithmetic,
        "seconds": report.seconds,
        "candidates": [c.model_dump(mode="json", exclude={"source_uri", "log_uri"}) for c in report.run.candidates],
    }


if __name__ == "__main__":
    sys.exit(main())
