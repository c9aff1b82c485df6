"""Record the reports in tests/data/profiles: each kernel there, profiled on a GPU as hiera_candidate_profile does it.

    python -m scripts.record_profiles --out FOLDER [--seconds 250] [--only NAME,…]

Each kernel is a candidate for its task: the judge verifies one call of it, which Nsight Compute watches, and then
evaluates it for its time. Leaves, packed in FOLDER/profiles.tar.gz, per kernel NAME.json (contract, timing, profile),
NAME.ncu-rep, and the pages of the report that ncu prints: NAME.raw.csv, NAME.details.csv, NAME.source.csv. What fails is
told, and the rest goes on. Needs an NVIDIA GPU, nvcc and Nsight Compute.
"""

import argparse
import asyncio
import base64
import contextlib
import json
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import traceback
from collections.abc import Generator
from pathlib import Path
from typing import Any

from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.contracts.build import build_contract
from hiera_mcp.knowledge_base import hardware
from hiera_mcp.model.contract import Contract, Task
from hiera_mcp.model.evaluation import Evaluation, Timing
from hiera_mcp.model.space import spaces_of
from hiera_mcp.model.work import EvaluateRequest, Limits, ProfileRequest, TraceRequest
from hiera_mcp.sandbox.devices import gpus
from hiera_mcp.sandbox.local import LocalExecutor
from hiera_mcp.sandbox.profiling import nsight

DATA = Path(__file__).resolve().parents[1] / "tests" / "data" / "profiles"


async def quiet(message: str, fraction: float | None) -> None:
    """Progress is not shown."""


class Recorder:
    """Records one kernel after another."""

    def __init__(self, executor: LocalExecutor, out: Path) -> None:
        self._executor, self._out = executor, out
        self._files = Path(tempfile.mkdtemp())
        self.failures = 0

    async def contract(self, task: str, precision: Any) -> Contract:
        source = (DATA / "tasks" / f"{task}.py").read_text()
        gpu = gpus()[0]
        row = hardware.gpu_for(gpu.target, gpu.name)
        found = await self._executor.trace(TraceRequest(source=source, name=task, precision=precision), quiet)
        about = Task(name=task, source=source)
        return build_contract(about, gpu.target, precision, found, hardware.peaks(row), row.memory_bytes)

    async def record(self, name: str, contract: Contract) -> None:
        """Evaluate, profile, print pages; each step by itself, so that one that fails does not hide the others."""
        with self._told(name):
            timing = await self._time(name, contract)
            started = time.monotonic()
            found = await self._executor.profile(_request(name, contract, timing), quiet)
            seconds = time.monotonic() - started
            report = base64.b64decode(found.report)
            if not report:
                raise RuntimeError(found.profile.counters)
            (self._files / f"{name}.ncu-rep").write_bytes(report)
            facts = {"name": name, "seconds": seconds, "timing": timing.model_dump(mode="json")}
            facts |= {"contract": contract.model_dump(mode="json"), "profile": found.profile.model_dump(mode="json")}
            (self._files / f"{name}.json").write_text(json.dumps(facts))
            print(f"{name}: {len(report)} bytes in {seconds:.1f} s. {found.profile.summary}", flush=True)
        for page in nsight.PAGES:
            with self._told(f"{name} {page}"):
                self._print(name, page)
        self.pack()

    def pack(self) -> None:
        with tarfile.open(self._out / "profiles.tar.gz", "w:gz") as tar:
            tar.add(self._files, "profiles")

    @contextlib.contextmanager
    def _told(self, what: str) -> Generator[None]:
        try:
            yield
        except Exception:  # noqa: BLE001 - the next kernel may work
            self.failures += 1
            print(f"FAILED {what}\n{traceback.format_exc()}", flush=True)

    async def _time(self, name: str, contract: Contract) -> Timing:
        wanted = _request(name, contract, None).model_dump(include=set(EvaluateRequest.model_fields))
        result = await self._executor.evaluate(EvaluateRequest.model_validate(wanted), quiet)
        if not isinstance(result, Evaluation) or result.timing is None:
            raise RuntimeError(f"not timed: {result.reason}")
        return result.timing

    def _print(self, name: str, page: nsight.Page) -> None:
        ncu = nsight.find()
        assert ncu is not None
        command = nsight.page_command(ncu, str(self._files / f"{name}.ncu-rep"), page)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        (self._files / f"{name}.{page}.csv").write_text(done.stdout)


def _request(name: str, contract: Contract, timing: Timing | None) -> ProfileRequest:
    return ProfileRequest(
        contract=contract,
        files=render_files(contract),
        space=spaces_of(contract.target)[0],
        sources={"cuda_source.cu": (DATA / "kernels" / f"{name}.cu").read_text()},
        limits=Limits(rounds_s=0.3),
        timing=timing,
    )


async def _all(args: argparse.Namespace) -> int:
    end = time.monotonic() + args.seconds
    planted = tomllib.loads((DATA / "planted.toml").read_text())["kernel"]
    wanted = [k for k in planted if not args.only or k["name"] in args.only.split(",")]
    executor = LocalExecutor(cache_dir=Path(tempfile.mkdtemp()) / "cache")
    recorder = Recorder(executor, args.out)
    try:
        for task in dict.fromkeys(k["task"] for k in wanted):
            kernels = [k for k in wanted if k["task"] == task and time.monotonic() < end]
            contract = await recorder.contract(
                task, next((k["precision"] for k in kernels if "precision" in k), "float32")
            )
            for kernel in kernels:
                if time.monotonic() < end:
                    await recorder.record(kernel["name"], contract)
    finally:
        recorder.pack()
        await executor.close()
    print(f"{recorder.failures} failures")
    return 1 if recorder.failures else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=250)
    parser.add_argument("--only", default="")
    return asyncio.run(_all(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
