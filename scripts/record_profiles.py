"""Record what tests/data/profiles holds: each kernel there, profiled on a GPU as hiera_candidate_profile does it.

    python -m scripts.record_profiles --out FOLDER [--seconds 250] [--only NAME,…]
    python -m scripts.record_profiles --unpack FOLDER

The first leaves FOLDER/profiles.tar.gz, the second puts its content into tests/data/profiles and benchmarks/results.

Each kernel is a candidate for its task: it is evaluated for its time, then profiled, one call under Nsight Compute. Kept,
each compressed by xz: of all kernels what NVIDIA's reader found (NAME.json), and of those in `WHOLE` the report
(NAME.ncu-rep) and the pages that ncu prints of it (NAME.raw.csv, …). recorded.json holds floors and times,
planted_defects.json what was found. What fails is told, and the rest goes on. Needs an NVIDIA GPU, nvcc and Nsight
Compute; `--unpack` needs none of them.
"""

import argparse
import asyncio
import base64
import contextlib
import json
import lzma
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

from benchmarks.machine import describe
from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.contracts.build import build_contract
from hiera_mcp.knowledge_base import hardware
from hiera_mcp.model.contract import Contract, Task
from hiera_mcp.model.evaluation import Evaluation, Timing
from hiera_mcp.model.profile import Profile
from hiera_mcp.model.space import spaces_of
from hiera_mcp.model.work import EvaluateRequest, Limits, ProfileRequest, TraceRequest
from hiera_mcp.sandbox.devices import gpus
from hiera_mcp.sandbox.local import LocalExecutor
from hiera_mcp.sandbox.profiling import nsight

ROOT = Path(__file__).resolve().parents[1]
DATA, RESULTS = ROOT / "tests" / "data" / "profiles", ROOT / "benchmarks" / "results"
WHOLE = ("uncoalesced", "two_kernels", "fma_product")


async def quiet(message: str, fraction: float | None) -> None:
    """Progress is not shown."""


class Recorder:
    """Records one kernel after another."""

    def __init__(self, executor: LocalExecutor, out: Path) -> None:
        self._executor, self._out = executor, out
        self._files = Path(tempfile.mkdtemp())
        self._recorded: dict[str, Any] = {}
        self._found: list[dict[str, Any]] = []
        self.failures = 0

    async def contract(self, task: str, precision: Any) -> Contract:
        source = (DATA / "tasks" / f"{task}.py").read_text()
        gpu = gpus()[0]
        row = hardware.gpu_for(gpu.target, gpu.name)
        found = await self._executor.trace(TraceRequest(source=source, name=task, precision=precision), quiet)
        about = Task(name=task, source=source)
        return build_contract(about, gpu.target, precision, found, hardware.peaks(row), row.memory_bytes)

    async def record(self, planted: dict[str, str], contract: Contract) -> None:
        """Evaluate, profile, keep; a failure is told and does not end the recording."""
        name = planted["name"]
        try:
            timing = await self._time(name, contract)
            started = time.monotonic()
            found = await self._executor.profile(_request(name, contract, timing), quiet)
            seconds = time.monotonic() - started
            if not found.report:
                raise RuntimeError(found.profile.counters)
            self._keep(name, base64.b64decode(found.report))
        except Exception:  # noqa: BLE001 - the next kernel may work
            self.failures += 1
            print(f"FAILED {name}\n{traceback.format_exc()}", flush=True)
            return
        parts = {"floor": contract.floor, "features": contract.features, "timing": timing}
        self._recorded[name] = {key: value.model_dump(mode="json") for key, value in parts.items()}
        self._found.append(_row(planted, found.profile, seconds))
        print(f"{name}: {seconds:.1f} s. {found.profile.summary}", flush=True)

    def pack(self) -> None:
        """Write the archive, with what was recorded so far."""
        ncu = nsight.find()
        machine = {**describe(), "ncu": nsight.version(ncu) if ncu else ""}
        _write(self._files / "recorded.json", {"machine": machine, "kernels": self._recorded})
        _write(self._files / "planted_defects.json", {"machine": machine, "kernels": self._found})
        self._out.mkdir(parents=True, exist_ok=True)
        with tarfile.open(self._out / "profiles.tar.gz", "w:gz") as tar:
            tar.add(self._files, "profiles")

    async def _time(self, name: str, contract: Contract) -> Timing:
        wanted = _request(name, contract, None).model_dump(include=set(EvaluateRequest.model_fields))
        result = await self._executor.evaluate(EvaluateRequest.model_validate(wanted), quiet)
        if not isinstance(result, Evaluation) or result.timing is None:
            raise RuntimeError(f"not timed: {result.reason}")
        return result.timing

    def _keep(self, name: str, report: bytes) -> None:
        ncu = nsight.find()
        assert ncu is not None
        with tempfile.TemporaryDirectory() as folder:
            path, result = Path(folder) / f"{name}.ncu-rep", Path(folder) / "result.json"
            path.write_bytes(report)
            _run(*_reader(ncu), "--report", str(path), "--result", str(result))
            self._compress(f"{name}.json", result.read_bytes())
            if name in WHOLE:
                self._compress(f"{name}.ncu-rep", report)
                for page in nsight.PAGES:
                    self._compress(f"{name}.{page}.csv", _run(*nsight.page_command(ncu, str(path), page)))

    def _compress(self, name: str, data: bytes) -> None:
        folder = self._files / "recorded"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.xz").write_bytes(lzma.compress(data, preset=9))


def _request(name: str, contract: Contract, timing: Timing | None) -> ProfileRequest:
    return ProfileRequest(
        contract=contract,
        files=render_files(contract),
        space=spaces_of(contract.target)[0],
        sources={"cuda_source.cu": (DATA / "kernels" / f"{name}.cu").read_text()},
        limits=Limits(rounds_s=0.3),
        timing=timing,
    )


def _row(planted: dict[str, str], profile: Profile, seconds: float) -> dict[str, Any]:
    """One kernel in the summary: what was expected, what was found."""
    first = profile.directions[0]
    return {
        "kernel": planted["name"],
        "expected": {key: planted[key] for key in ("bottleneck", "first", "without") if key in planted},
        "bottleneck": profile.bottleneck,
        "first": first.direction.value if first.score else "nothing",
        "scores": {d.direction.value: d.score for d in profile.directions},
        "signs": first.signs_for if first.score else first.signs_against,
        "summary": profile.summary,
        "profile_seconds": round(seconds, 1),
    }


def _reader(ncu: Path) -> tuple[str, ...]:
    folders = nsight.readers(ncu)
    where = ("--reader", str(folders[0])) if folders else ()
    return (sys.executable, "-P", "-m", "hiera_mcp.sandbox.child.ncu_reader", *where)


def _run(*command: str) -> bytes:
    return subprocess.run(command, capture_output=True, timeout=60, check=True).stdout


def _write(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n")


async def _all(args: argparse.Namespace) -> int:
    end = time.monotonic() + args.seconds
    planted: list[dict[str, str]] = tomllib.loads((DATA / "planted.toml").read_text())["kernel"]
    wanted = [k for k in planted if not args.only or k["name"] in args.only.split(",")]
    executor = LocalExecutor(cache_dir=Path(tempfile.mkdtemp()) / "cache")
    recorder = Recorder(executor, args.out)
    contracts: dict[str, Contract] = {}
    with _closed(recorder):
        for kernel in wanted:
            if time.monotonic() > end:
                print(f"out of time before {kernel['name']}")
                break
            task = kernel["task"]
            if task not in contracts:
                contracts[task] = await recorder.contract(task, kernel.get("precision", "float32"))
            await recorder.record(kernel, contracts[task])
    await executor.close()
    return 1 if recorder.failures else 0


@contextlib.contextmanager
def _closed(recorder: Recorder) -> Generator[None]:
    try:
        yield
    finally:
        recorder.pack()


def unpack(folder: Path) -> None:
    """Put a recorded archive where the tests and the results are."""
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(folder / "profiles.tar.gz") as tar:
            tar.extractall(scratch, filter="data")
        made = Path(scratch) / "profiles"
        (DATA / "recorded").mkdir(exist_ok=True)
        for old in (DATA / "recorded").glob("*.xz"):
            old.unlink()
        for new in (made / "recorded").glob("*.xz"):
            (DATA / "recorded" / new.name).write_bytes(new.read_bytes())
        (DATA / "recorded.json").write_bytes((made / "recorded.json").read_bytes())
        (RESULTS / "planted_defects.json").write_bytes((made / "planted_defects.json").read_bytes())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path)
    what.add_argument("--unpack", type=Path)
    parser.add_argument("--seconds", type=float, default=250)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    if args.unpack is not None:
        unpack(args.unpack)
        return 0
    return asyncio.run(_all(args))


if __name__ == "__main__":
    sys.exit(main())
