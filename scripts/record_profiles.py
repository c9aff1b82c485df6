"""Record the reports in tests/data/profiles: each kernel there, profiled on a GPU by the project's own command line.

    python -m scripts.record_profiles --out FOLDER [--seconds 250] [--only NAME,…]

Each kernel is a candidate for its task; the judge verifies it in its box, as it would for a profile, and afterwards
evaluates it for its time. Leaves per kernel NAME.ncu-rep, NAME.raw.csv, NAME.details.csv, NAME.source.csv and NAME.json,
all in FOLDER/profiles.tar.gz. What fails is told, and the rest goes on. Needs an NVIDIA GPU, nvcc and Nsight Compute.
"""

import argparse
import asyncio
import contextlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import traceback
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.contracts.build import build_contract
from hiera_mcp.knowledge_base import hardware
from hiera_mcp.model.contract import Contract, Task
from hiera_mcp.model.evaluation import Evaluation
from hiera_mcp.model.space import spaces_of
from hiera_mcp.model.work import EvaluateRequest, Limits, ProfileRequest, TraceRequest
from hiera_mcp.sandbox.devices import gpus
from hiera_mcp.sandbox.isolation.box import BoxSpec
from hiera_mcp.sandbox.launcher import boxes, judging
from hiera_mcp.sandbox.launcher.building import build
from hiera_mcp.sandbox.launcher.evaluating import evaluate
from hiera_mcp.sandbox.launcher.host import Host
from hiera_mcp.sandbox.launcher.tracing import trace
from hiera_mcp.sandbox.profiling import nsight

DATA = Path(__file__).resolve().parents[1] / "tests" / "data" / "profiles"
PACK = '"$@"; cp /box/r.ncu-rep /box/ncu.csv 2>/dev/null || cp /box/ncu.log /box/ncu.csv'
"""The launcher brings back one file of the box under this name."""


@dataclass(frozen=True)
class Recording(judging.Job):
    """A job whose box leaves the report itself, or ncu's log where there is none."""

    def spec(self, folder: Path, fd: int) -> BoxSpec:
        assert self.ncu is not None
        for name, text in self.request.sources.items():
            (folder / name).write_text(text)
        runner = boxes.runner(folder, fd, self.device, self.request.limits, self.binds)
        argv = nsight.record_command(self.ncu, runner.argv, "/box/r.ncu-rep", "/box/ncu.log")
        binds = (*runner.binds, *nsight.binds(self.ncu))
        whole = ("/bin/sh", "-c", PACK, "sh", *argv)
        return replace(runner, argv=whole, writable=True, binds=binds, profiler=True)


async def quiet(message: str, fraction: float | None) -> None:
    """Progress is not shown."""


class Recorder:
    """Records one kernel after another until the time is up."""

    def __init__(self, host: Host, out: Path, seconds: float) -> None:
        self._host, self._out = host, out
        self._files = Path(tempfile.mkdtemp())
        self._end = time.monotonic() + seconds
        self._ncu = nsight.find()
        self._gpu = gpus()[0]
        self.failures = 0

    async def contract(self, task: str, precision: Any) -> Contract:
        source = (DATA / "tasks" / f"{task}.py").read_text()
        found = await trace(self._host, TraceRequest(source=source, name=task, precision=precision), quiet)
        row = hardware.gpu_for(self._gpu.target, self._gpu.name)
        peaks = hardware.peaks(row)
        return build_contract(
            Task(name=task, source=source), self._gpu.target, precision, found, peaks, row.memory_bytes
        )

    async def record(self, name: str, contract: Contract) -> None:
        """Profile, export, evaluate; each step by itself, so that one that fails does not hide the others."""
        started = time.monotonic()
        request = self._request(name, contract)
        log, report = b"", b""
        with self._told(name, "profile"):
            left = await self._profile(request)
            log, report = left
        (self._files / f"{name}.log").write_bytes(log)
        if report:
            (self._files / f"{name}.ncu-rep").write_bytes(report)
            for page in ("raw", "details", "source"):
                with self._told(name, page):
                    self._export(name, page)
        profiled = time.monotonic() - started
        facts: dict[str, Any] = {"name": name, "contract": contract.model_dump(mode="json"), "seconds": profiled}
        with self._told(name, "evaluate"):
            facts["evaluation"] = (await self._evaluate(request)).model_dump(mode="json")
        (self._files / f"{name}.json").write_text(json.dumps(facts))
        print(f"{name}: {len(report)} bytes in {profiled:.1f} s, {_verdict(facts)}", flush=True)
        self.pack()

    def out_of_time(self) -> bool:
        return time.monotonic() > self._end

    def pack(self) -> None:
        with tarfile.open(self._out / "profiles.tar.gz", "w:gz") as tar:
            tar.add(self._files, "profiles")

    def ask(self, name: str, *command: str) -> None:
        """Keep what a command prints."""
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        (self._files / name).write_text(f"rc={done.returncode}\n{done.stdout}\n--- stderr\n{done.stderr}")

    def describe(self) -> None:
        """What this ncu says of itself, of a program without kernels, and of a metric that does not exist."""
        ncu = str(self._ncu)
        for name, command in {
            "version.txt": (ncu, "--version"),
            "help.txt": (ncu, "--help"),
            "no_kernels.txt": (ncu, "--section", "SpeedOfLight", sys.executable, "-c", "print(1)"),
            "no_such_metric.txt": (ncu, "--metrics", "sm__no_such.sum", sys.executable, "-c", "print(1)"),
            "installation.txt": ("sh", "-c", f"ls -la $(dirname {ncu}) /opt/nvidia/nsight-compute/*; file {ncu}; head -c 300 {ncu}"),
        }.items():
            with self._told(name, "ask"):
                self.ask(name, *command)

    @contextlib.contextmanager
    def _told(self, name: str, step: str) -> Any:
        try:
            yield
        except Exception:  # noqa: BLE001 - the next kernel may work
            self.failures += 1
            print(f"FAILED {name}: {step}\n{traceback.format_exc()}", flush=True)

    def _request(self, name: str, contract: Contract) -> ProfileRequest:
        text = (DATA / "kernels" / f"{name}.cu").read_text()
        return ProfileRequest(
            contract=contract,
            files=render_files(contract),
            space=spaces_of(contract.target)[0],
            sources={"cuda_source.cu": text},
            limits=Limits(rounds_s=0.3),
            timing=None,
        )

    async def _profile(self, request: ProfileRequest) -> tuple[bytes, bytes]:
        """ncu's log and the report; the latter is empty when there is none."""
        built = await build(self._host, request, quiet)
        ended = await judging.run(Recording(self._host, request, built, self._gpu.device, quiet, ncu=self._ncu))
        left = ended.counters or b""
        said = f"{ended.report}\n{ended.deadline}\n{ended.outcome}\n".encode()
        if b"\0" in left[:400]:
            return said, left
        print(said.decode()[-3000:], left.decode(errors="replace")[-3000:], flush=True)
        return said, self._plain(built.folder, request.contract)

    def _plain(self, folder: Path, contract: Contract) -> bytes:
        """FALLBACK."""
        with tempfile.TemporaryDirectory() as d:
            path = Path(d) / "contract.json"
            path.write_text(contract.model_dump_json())
            driver = (sys.executable, str(Path(__file__).with_name("plain_profile_driver.py")), str(folder / "case0.so"), str(path))
            argv = nsight.record_command(self._ncu or Path(), driver, f"{d}/r.ncu-rep", f"{d}/log")
            done = subprocess.run(argv, capture_output=True, text=True, timeout=90, check=False)
            if not (Path(d) / "r.ncu-rep").exists():
                log = (Path(d) / "log").read_text() if (Path(d) / "log").exists() else ""
                raise RuntimeError(f"no report: {done.returncode} {done.stdout[-1500:]} {done.stderr[-1500:]} {log[-1500:]}")
            print("by the plain driver", flush=True)
            return (Path(d) / "r.ncu-rep").read_bytes()

    def _export(self, name: str, page: Any) -> None:
        command = nsight.page_command(self._ncu or Path(), str(self._files / f"{name}.ncu-rep"), page)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        (self._files / f"{name}.{page}.csv").write_text(done.stdout)
        if done.returncode or done.stderr:
            print(f"{name} {page}: rc={done.returncode} {done.stderr[-500:]}", flush=True)

    async def _evaluate(self, request: ProfileRequest) -> Evaluation:
        wanted = {n: getattr(request, n) for n in EvaluateRequest.model_fields if hasattr(request, n)}
        result = await evaluate(self._host, EvaluateRequest(**wanted), quiet)
        assert isinstance(result, Evaluation)
        return result


def _verdict(facts: dict[str, Any]) -> str:
    found = facts.get("evaluation")
    if not found:
        return "not evaluated"
    seconds = found["timing"]["candidate"]["median"] if found.get("timing") else None
    floor = facts["contract"]["floor"]["seconds"]
    return f"{found['status']}: {found['reason'][:160]}; {seconds} s, floor {floor} s"


async def _all(args: argparse.Namespace) -> int:
    planted = tomllib.loads((DATA / "planted.toml").read_text())["kernel"]
    wanted = [k for k in planted if not args.only or k["name"] in args.only.split(",")]
    host = await Host.open(Path(tempfile.mkdtemp()) / "cache", unsafe=False)
    recorder = Recorder(host, args.out, args.seconds)
    try:
        recorder.describe()
        contracts: dict[str, Contract] = {}
        for task in dict.fromkeys(k["task"] for k in wanted):
            contracts[task] = await recorder.contract(task, "float16" if task == "matmul" else "float32")
            print(f"traced {task}", flush=True)
        await asyncio.gather(*(_prebuilt(recorder, k["name"], contracts[k["task"]]) for k in wanted))
        for task in contracts:
            for kernel in (k for k in wanted if k["task"] == task and not recorder.out_of_time()):
                await recorder.record(kernel["name"], contracts[task])
    finally:
        recorder.pack()
        await host.close()
    print(f"{recorder.failures} failures")
    return 1 if recorder.failures else 0


def _prebuilt(recorder: Recorder, name: str, contract: Contract) -> Awaitable[Any]:
    return build(recorder._host, recorder._request(name, contract), quiet)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=250)
    parser.add_argument("--only", default="")
    return asyncio.run(_all(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
