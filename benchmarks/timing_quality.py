"""Can the timing be trusted? Twins, a slightly slower twin, and Nsight Compute's own durations.

    python -m benchmarks.timing_quality [--target cpu] [--device cuda:1] [--comparisons N] [--only twins slower durations] [--out FILE]

1. Identical candidates, compared in one session as hiera_candidates_evaluate does it: "no difference" in at least 95 %.
2. The same candidate against one that does 3 % more work, each of them first in half of the comparisons: told in at least 90 %.
3. On a GPU with Nsight Compute: the median that an evaluation reports against gpu__time_duration of the same kernel, for
   kernels of 20 us and more: within 3 %. ncu leaves clocks and caches alone (--clock-control none, --cache-control none),
   and the runner's own code flushes the L2 before each call, so that both time the same state.

Without --target the GPU of this host is used, or the processor where there is none. For figures to keep, use a quiet machine.
"""

import argparse
import array
import csv
import json
import os
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from benchmarks.machine import describe
from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.contracts.build import build_contract, cpu_peaks
from hiera_mcp.knowledge_base import hardware
from hiera_mcp.model.contract import Contract, Task
from hiera_mcp.model.evaluation import Evaluation, Timing
from hiera_mcp.model.space import Target, is_cpu, source_file, spaces_of
from hiera_mcp.model.work import CompareRequest, EvaluateRequest, Limits, PairReport, Rival, TraceRequest
from hiera_mcp.planning.parents import in_one_session
from hiera_mcp.sandbox.child.c_candidate import CCandidate
from hiera_mcp.sandbox.child.cuda_platform import CudaPlatform
from hiera_mcp.sandbox.child.cudart import cuda_runtime
from hiera_mcp.sandbox.devices import gpus
from hiera_mcp.sandbox.local import LocalExecutor
from hiera_mcp.sandbox.profiling import nsight

PARTS = ("twins", "slower", "durations")
MORE = 0.03
"""How much more work the slower twin does."""
SAME_AT_LEAST, TOLD_AT_LEAST, WITHIN = 0.95, 0.90, 0.03
SHORTEST_S = 20e-6
CALLS = 31
"""Calls that ncu looks at."""
STEPS = {"cpu": 400, "cuda": 4000}
ELEMENTS = {"cpu": 1 << 18, "cuda": 1 << 20}
KERNELS = ((1 << 14, 1), (1 << 22, 250), (1 << 22, 1000), (1 << 22, 40_000), (1 << 24, 1), (1 << 24, 4000))
"""Elements and steps: about 20 us to 5 ms on an H200, bound by arithmetic, but for one that is bound by memory. The first one
does next to nothing, to show what is left of the clock's own cost; it is not judged."""

TASK = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn({elements})]

def get_init_inputs():
    return []
"""

# y → (x + y) / 2 comes to rest at x long before the last step, so that more steps change the time alone.
CPU = """
#include "contract.h"
int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {{
    const float* x = in->{input};
    float* y = out->{output};
    for (long i = 0; i < {elements}; i += 64) {{
        float v[64] = {{}};
        for (int k = 0; k < {steps}; k++)
            for (int j = 0; j < 64; j++) v[j] = 0.5f * v[j] + 0.5f * x[i + j];
        for (int j = 0; j < 64; j++) y[i + j] = v[j] > 0 ? v[j] : 0;
    }}
    return 0;
}}
"""
CUDA = """
#include "contract.h"
__global__ void chain(const float* x, float* y) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float half = 0.5f * x[i], v = {start};
    #pragma unroll 8
    for (int k = 0; k < {steps}; k++) v = fmaf(0.5f, v, half);
    y[i] = fmaxf(v, 0.f);
}}
int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {{
    chain<<<{elements} / 256, 256, 0, stream>>>(in->{input}, out->{output});
    return (int)cudaGetLastError();
}}
"""


@dataclass(frozen=True)
class Bench:
    """The executor, and the device to measure on."""

    executor: LocalExecutor
    target: Target
    device: str

    async def contract(self, elements: int) -> Contract:
        source = TASK.format(elements=elements)
        task = Task(name="relu", source=source)
        if is_cpu(self.target):
            rates = await self.executor.host_rates(quiet)
            trace = await self.executor.trace(TraceRequest(source=source, name="relu", rates=rates), quiet)
            return build_contract(task, self.target, "float32", trace, cpu_peaks(trace, rates), 8 << 30)
        trace = await self.executor.trace(TraceRequest(source=source, name="relu"), quiet)
        gpu = hardware.gpu_for(self.target)
        return build_contract(task, self.target, "float32", trace, hardware.peaks(gpu), gpu.memory_bytes)

    async def compare(self, contract: Contract, this: str, other: str) -> PairReport:
        space, file = spaces_of(self.target)[0], source_file(self.target)
        request = CompareRequest(
            contract=contract,
            files=render_files(contract),
            space=space,
            sources={file: this},
            other=Rival(space=space, sources={file: other}),
            device=self.device,
        )
        return await self.executor.compare(request, quiet)

    async def evaluate(self, contract: Contract, code: str) -> Evaluation:
        request = EvaluateRequest(
            contract=contract,
            files=render_files(contract),
            space=spaces_of(self.target)[0],
            sources={source_file(self.target): code},
            limits=Limits(rounds_s=0.5),
            device=self.device,
        )
        found = await self.executor.evaluate(request, quiet)
        if not isinstance(found, Evaluation):
            raise SystemExit(f"nothing ran: {found.reason}")
        return found


async def quiet(message: str, fraction: float | None) -> None:
    """Progress is not shown."""


def candidate(contract: Contract, steps: int) -> str:
    case = contract.cases[0]
    return (CPU if is_cpu(contract.target) else CUDA).format(
        elements=case.inputs[0].shape[0],
        steps=steps,
        start="0.f" if steps > 100 else "x[i]",  # few steps begin where they would end
        input=case.inputs[0].name,
        output=case.outputs[0].name,
    )


async def comparisons(bench: Bench, count: int, more: float) -> dict[str, Any]:
    """`count` comparisons of a candidate with one that does `more` work, and how many ended as they should."""
    kind = "cpu" if is_cpu(bench.target) else "cuda"
    contract = await bench.contract(ELEMENTS[kind])
    steps = STEPS[kind]
    codes = [candidate(contract, n) for n in (steps, round(steps * (1 + more)))]
    if not more:
        codes[1] += "// the other one\n"
    rows: list[dict[str, Any]] = []
    for n in range(count):
        turned = n % 2 == 1
        this, other = codes[::-1] if turned else codes
        began = time.monotonic()
        report = await bench.compare(contract, this, other)
        rows.append(_row(report, turned, time.monotonic() - began))
        print(rows[-1], file=sys.stderr)
    right = [r["verdict"] == ("no_difference" if not more else "slower" if r["turned"] else "faster") for r in rows]
    return {"comparisons": count, "right": sum(right), "share": sum(right) / count, "rows": rows}


def _row(report: PairReport, turned: bool, seconds: float) -> dict[str, Any]:
    found = in_one_session(report)
    return {
        "verdict": found.verdict if found else None,
        "ratio": [round(x, 5) for x in (found.ratio.low, found.ratio.median, found.ratio.high)] if found else None,
        "reason": report.reason,
        "turned": turned,
        "rounds": report.rounds,
        "call_s": report.this_s,
        "seconds": round(seconds, 2),
        "load": os.getloadavg()[0],
    }


async def durations(bench: Bench) -> dict[str, Any]:
    """Our median beside ncu's, for each of KERNELS."""
    ncu = nsight.find()
    if is_cpu(bench.target) or ncu is None:
        return {"skipped": "needs a GPU and Nsight Compute"}
    rows: list[dict[str, Any]] = []
    for elements in dict.fromkeys(n for n, _ in KERNELS):
        contract = await bench.contract(elements)
        for steps in (s for n, s in KERNELS if n == elements):
            code = candidate(contract, steps)
            found = await bench.evaluate(contract, code)
            seen = ncu_durations(ncu, contract, code)
            rows.append(
                {"elements": elements, "steps": steps, **_duration_row(found.timing, seen), "reason": found.reason}
            )
            print(rows[-1], file=sys.stderr)
    judged = [r for r in rows if r["ncu_s"] >= SHORTEST_S]
    right = sum(r["ours_s"] is not None and abs(r["ratio"] - 1) <= WITHIN for r in judged)
    return {"kernels": len(judged), "right": right, "share": right / max(1, len(judged)), "rows": rows}


def _duration_row(timing: Timing | None, seen: Sequence[float]) -> dict[str, Any]:
    ncu_s = statistics.median(seen)
    theirs = {"ncu_s": ncu_s, "ncu_range_s": [min(seen), max(seen)]}
    if timing is None:
        return {"ours_s": None, **theirs}
    return {
        "ours_s": timing.candidate.median,
        "ours_95": [timing.candidate.low, timing.candidate.high],
        "clock_overhead_s": timing.clock_overhead,
        **theirs,
        "ratio": timing.candidate.median / ncu_s,
        "ratio_with_overhead": (timing.candidate.median + timing.clock_overhead) / ncu_s,
        "device_clocks": timing.device_clocks,
        "clock_limits": timing.clock_limits,
        "unmeasured": timing.unmeasured,
        "short_call": timing.short_call.model_dump(mode="json") if timing.short_call else None,
    }


def ncu_durations(ncu: Path, contract: Contract, code: str) -> list[float]:
    """Seconds of each call as ncu sees it, in a process that calls as the runner does."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        for name, text in {**render_files(contract), source_file(contract.target): code}.items():
            (folder / name).write_text(text)
        architecture = contract.target.partition(":")[2]
        flags = ("-O3", "-std=c++17", f"-arch={architecture}", "-shared", "-Xcompiler", "-fPIC", "-DHIERA_CASE=0")
        sources = (source_file(contract.target), "cpp_source.cpp")
        subprocess.run(["nvcc", *flags, "-o", "case0.so", *sources], cwd=folder, check=True)
        asked = ("--metrics", "gpu__time_duration.sum", "--clock-control", "none", "--cache-control", "none")
        shown = ("--page", "raw", "--csv", "--print-units", "base", "--log-file", str(folder / "ncu.csv"))
        target = (sys.executable, "-m", "benchmarks.timing_quality", "--call", work, "--contract", contract.id)
        elements = str(contract.cases[0].inputs[0].shape[0])
        subprocess.run(
            [str(ncu), *asked, *shown, "--kernel-name", "chain", *target, "--elements", elements], check=True
        )
        lines = [line for line in (folder / "ncu.csv").read_text().splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(lines))[1:]  # the first one holds the units
    return [float(r["gpu__time_duration.sum"].replace(",", "")) / 1e9 for r in rows]


def call_under_ncu(folder: Path, contract_id: str, elements: int) -> None:
    """Call a built candidate CALLS times, each after a flush, with the runner's own code."""
    runtime, platform = cuda_runtime(), CudaPlatform(0)
    values = array.array("f", (random.gauss(0, 1) for _ in range(1 << 14)))
    source, target = runtime.malloc(4 * elements), runtime.malloc(4 * elements)
    block, (address, _) = 4 * len(values), values.buffer_info()
    for start in range(0, 4 * elements, block):
        runtime.memcpy(source + start, address, min(block, 4 * elements - start), runtime.memcpyHostToDevice)
    loaded = CCandidate(folder, {"id": contract_id, "cases": [{}]}, platform)
    loaded.bind([], [{"workspace": None, "sets": [{"inputs": [source], "outputs": [target]}]}])
    code, times = platform.each(lambda s: loaded.run(0, s), lambda _: None, [0] * CALLS, flush=True)
    print(json.dumps({"code": code, "events_under_ncu_s": statistics.median(times) / 1e9}), file=sys.stderr)
    if code:
        raise SystemExit(f"hiera_run returned {code}")


async def measure(target: Target, device: str, count: int, parts: Sequence[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as cache:
        executor = LocalExecutor(cache_dir=Path(cache))
        bench = Bench(executor, target, device)
        found: dict[str, Any] = {}
        try:
            if "durations" in parts:
                found["durations"] = await durations(bench)
            if "twins" in parts:
                found["twins"] = await comparisons(bench, count, 0.0)
            if "slower" in parts:
                found["slower"] = await comparisons(bench, count, MORE)
        finally:
            await executor.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default=None)
    parser.add_argument("--device", default="auto", help="for two candidates; durations are those of the first GPU")
    parser.add_argument("--comparisons", type=int, default=40)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--call", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--contract", help=argparse.SUPPRESS)
    parser.add_argument("--elements", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.call:
        call_under_ncu(args.call, args.contract, args.elements)
        return 0
    target = args.target or (gpus()[0].target if gpus() else "cpu")
    began = time.monotonic()
    found = anyio.run(measure, target, args.device, args.comparisons, args.only)
    result = {
        "command": shlex.join(["python", "-m", "benchmarks.timing_quality", *sys.argv[1:]]),
        "machine": describe(),
        "load": os.getloadavg(),
        "target": target,
        "more_work": MORE,
        "seconds": round(time.monotonic() - began, 1),
        **found,
    }
    text = json.dumps(result, indent=1)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(text + "\n")
    limits = {"twins": SAME_AT_LEAST, "slower": TOLD_AT_LEAST, "durations": 1.0}
    shares = {part: f["share"] for part, f in found.items() if "share" in f}
    print(json.dumps({part: {"share": s, "at_least": limits[part]} for part, s in shares.items()}))
    return 0 if all(s >= limits[part] for part, s in shares.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
