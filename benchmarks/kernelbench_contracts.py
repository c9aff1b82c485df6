"""The contracts of KernelBench's tasks: are all built, how long are they as an agent sees them, do their skeletons compile?

    python -m benchmarks.kernelbench_contracts --kernelbench PATH [--every N] [--work DIR] [--out FILE]

1. `hiera-mcp contract build --kernelbench PATH --all` for each target, with the memory of its whole process tree sampled.
   A folder given with --work is resumed; what it holds already counts as built, with the seconds that it took then.
2. Tokens of hiera_contract_build's result for each contract, by the estimate that the server itself uses.
3. Each skeleton, built with the compiler and the flags of a candidate and with warnings on; a warning is a failure. Not
   boxed, and not cached.
4. torch_demo.py on the cpu skeletons of tasks with little data: it must say that the candidate is not implemented.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks import memory
from benchmarks.machine import describe
from hiera_mcp.client.kernelbench import LEVELS, Problem, read_checkout
from hiera_mcp.errors import ToolchainError
from hiera_mcp.model.contract import Contract
from hiera_mcp.model.run import JobState
from hiera_mcp.model.space import Target, source_file
from hiera_mcp.planning.next_step import after_contract
from hiera_mcp.sandbox.compilers.base import Job, Tool
from hiera_mcp.sandbox.compilers.build import compiler_for, find_tool
from hiera_mcp.tools.budget import tokens
from hiera_mcp.tools.contract_build import ContractResult
from hiera_mcp.tools.contract_view import contract_view

TARGETS = ("cpu", "cuda:sm_80", "cuda:sm_90a")
FILES = ("contract.h", "contract.json", "cpp_source.cpp", "groundtruth.py", "params_semantics.json", "torch_demo.py")
WARNINGS = {"cpu": ("-Wall", "-Wextra"), "cuda": ("-Xcompiler", "-Wall,-Wextra")}
DEMO_S = 120


@dataclass
class Record:
    """What became of one task; by target where it differs by target."""

    task: str
    contract_ids: dict[str, str] = field(default_factory=dict[str, str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    errors: dict[str, str] = field(default_factory=dict[str, str])
    tokens: dict[str, int] = field(default_factory=dict[str, int])
    """Of the text of the tool's result; the structured content is the same without line breaks."""
    skeletons: dict[str, str] = field(default_factory=dict[str, str])
    """`ok`, or what the compiler said, or why it was not compiled."""
    demo: str = ""
    """`ok`: it said that the candidate is not implemented; else what it said, or why it was not run."""


def build(args: argparse.Namespace, problems: Sequence[Problem], target: Target) -> dict[str, object]:
    """Run the command for one target: exit status, wall-clock time, peak memory."""
    whole = ["--all"] if args.every == 1 else [w for p in problems for w in ("--task", f"{p.level}/{p.number}")]
    command = [sys.executable, "-m", "hiera_mcp", "contract", "build", "--kernelbench", str(args.kernelbench), *whole]
    command += ["--target", target, "--out", str(folder_of(args.work, target)), "--jobs", str(args.jobs)]
    command += ["--data-dir", str(args.work / "data")]
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = memory.peak_of_tree(process)
    return {
        "exit_status": process.returncode,
        "seconds": round(time.monotonic() - begin, 1),
        "peak_memory_bytes": peak,
    }


def folder_of(work: Path, target: Target) -> Path:
    return work / target.replace(":", "_")


def note_contracts(records: dict[str, Record], work: Path, target: Target) -> None:
    """What the summary and the contracts of one target say."""
    rows = json.loads((folder_of(work, target) / "summary.json").read_text())["tasks"]
    for row in rows:
        record = records[row["task"]]
        record.seconds[target] = round(row["seconds"], 2)
        if row["error"]:
            record.errors[target] = row["error"]
            continue
        record.contract_ids[target] = row["contract_id"]
        record.tokens[target] = result_tokens(read_contract(work, target, record.task))


def read_contract(work: Path, target: Target, task: str) -> Contract:
    return Contract.model_validate_json((folder_of(work, target) / task / "contract.json").read_text())


def result_tokens(contract: Contract) -> int:
    """Tokens of the text that hiera_contract_build returns."""
    view = contract_view(contract, sorted((*FILES, source_file(contract.target))))
    step = after_contract(view.contract_id)
    result = ContractResult(state=JobState.DONE, job_id="j_" + "0" * 16, next_step=step, contract=view)
    return tokens(result.model_dump_json(indent=2))


def compile_all(records: Iterable[Record], work: Path, target: Target, jobs: int) -> dict[str, object]:
    """Build the skeletons of one target, `jobs` at once."""
    try:
        tool = find_tool(target)
    except ToolchainError as error:
        return {"skipped": str(error)}
    begin = time.monotonic()
    built = [r for r in records if target in r.contract_ids]

    def compile_one(record: Record) -> str:
        return compile_skeleton(folder_of(work, target) / record.task, target, tool)

    with ThreadPoolExecutor(jobs) as pool:
        said = pool.map(compile_one, built)
        for record, text in zip(built, said, strict=True):
            record.skeletons[target] = text
    failed = sum(r.skeletons[target] != "ok" for r in built)
    seconds = round(time.monotonic() - begin, 1)
    return {"compiler": tool.version, "compiled": len(built), "failed": failed, "seconds": seconds}


def compile_skeleton(folder: Path, target: Target, tool: Tool) -> str:
    """`ok`, or the first lines of what the compiler said. Leaves case0.so in the folder."""
    job = Job(target=target, case=0, source=source_file(target))
    command = [*compiler_for(target).command(tool, job), *WARNINGS[target.partition(":")[0]]]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode or "warning" in done.stderr:
        return done.stderr[:1000] or f"exit status {done.returncode}"
    return "ok"


def demonstrate(record: Record, work: Path, most_bytes: int) -> str:
    """Run torch_demo.py on the cpu skeleton, where data is small enough."""
    if record.skeletons.get("cpu") != "ok":
        return "not run: no skeleton"
    contract = read_contract(work, "cpu", record.task)
    first = contract.cases[0]
    needed = sum(t.nbytes for t in (*first.inputs, *contract.parameters, *first.outputs))
    if needed > most_bytes:
        return f"not run: {needed} bytes of data"
    return demo_says(folder_of(work, "cpu") / record.task)


def demo_says(folder: Path) -> str:
    command = [sys.executable, "torch_demo.py", "case0.so"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=DEMO_S)
    except subprocess.TimeoutExpired:
        return f"no answer within {DEMO_S} s"
    said = (done.stderr or done.stdout).strip()
    return "ok" if done.returncode and "not implemented" in said.lower() else said[-500:] or "it said nothing"


def summary(records: Sequence[Record], builds: dict[str, object], compiled: dict[str, object]) -> dict[str, object]:
    """The figures that matter, before the rows."""
    most = max(((n, r.task, target) for r in records for target, n in r.tokens.items()), default=None)
    run = [r for r in records if r.demo and not r.demo.startswith("not run")]
    return {
        "tasks": len(records),
        "built": {t: sum(t in r.contract_ids for r in records) for t in builds},
        "most_tokens": most,
        "skeletons_ok": {t: sum(r.skeletons.get(t) == "ok" for r in records) for t in builds},
        "demos": {"run": len(run), "ok": sum(r.demo == "ok" for r in run), "not_run": len(records) - len(run)},
        "build": builds,
        "compile": compiled,
    }


def measure(args: argparse.Namespace) -> None:
    """Measure, and keep what is known after each target."""
    problems = read_checkout(args.kernelbench, LEVELS)[:: args.every]
    records = {p.name: Record(p.name) for p in problems}
    begin = time.monotonic()
    builds: dict[str, object] = {}
    compiled: dict[str, object] = {}
    figures: dict[str, object] = {}
    for target in args.targets:
        builds[target] = build(args, problems, target)
        note_contracts(records, args.work, target)
        compiled[target] = compile_all(records.values(), args.work, target, args.jobs)
        for record in records.values() if target == "cpu" else ():
            record.demo = demonstrate(record, args.work, args.demo_bytes)
        figures = summary(list(records.values()), builds, compiled)
        write(args, figures, records.values(), time.monotonic() - begin)
    print(json.dumps(figures, indent=2))


def write(args: argparse.Namespace, figures: dict[str, object], records: Iterable[Record], seconds: float) -> None:
    if args.out is None:
        return
    result = {
        "what": "contracts of KernelBench, levels 1 to 3" + (f", every {args.every}th" if args.every > 1 else ""),
        "machine": describe() | {"memory_bytes": memory.total(), "load": os.getloadavg()},
        "seconds": round(seconds, 1),
        "summary": figures,
        "tasks": [asdict(r) for r in records],
    }
    args.out.write_text(json.dumps(result, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelbench", type=Path, required=True, help="a checkout of KernelBench")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth task")
    parser.add_argument("--targets", nargs="+", default=list(TARGETS))
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--demo-bytes", type=int, default=512 << 20, help="most data of a task whose demo is run")
    parser.add_argument("--work", type=Path, help="folder to keep the contracts in (default: a temporary one)")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hiera-kernelbench-") as temporary:
        args.work = (args.work or Path(temporary)).resolve()
        measure(args)


if __name__ == "__main__":
    main()
