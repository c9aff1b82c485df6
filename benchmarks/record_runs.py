"""Real runs over the small tasks of `benchmarks/recorded`, for benchmarks/memory_ranking.py.

    python -m benchmarks.record_runs [--target cpu|cuda] [--data-dir DIR] [--task NAME] [--passes N] [--seconds N] [--out FILE]

A folder of `recorded/cpu` or `recorded/cuda` holds `task.py` and, per pair of space and direction, a folder
`SPACE.DIRECTION` of candidates. Each pair becomes a run of one round, so that its gain is over eager PyTorch; in addition all
pairs of a task become the rounds of one run, where each gains over what was there before. Their order is rotated from task
to task, so that none always comes first. These long runs come last. Everything runs on this host (`cuda`: on the first GPU that CUDA_VISIBLE_DEVICES
shows), through the server, as any client's run. Runs that the database has already are passed over, so that a recording
that was stopped goes on, and two may record different tasks into one database; --passes makes each of them several times,
since a busy host measures badly. The result is what `hiera-mcp kb export` writes, with the tasks' contracts and the host.
"""

import argparse
import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
from mcp import Client
from pydantic import JsonValue

from benchmarks.machine import describe
from hiera_mcp.client.connect import in_memory
from hiera_mcp.client.drive import drive
from hiera_mcp.client.events import Evaluated, Event
from hiera_mcp.client.script import Choice, Round, Script, Submission
from hiera_mcp.client.session import ToolFailed
from hiera_mcp.deps import open_deps
from hiera_mcp.errors import RequestError
from hiera_mcp.model.base import Model
from hiera_mcp.model.contract import Contract
from hiera_mcp.model.memory import Memory
from hiera_mcp.model.sanitizer import Sanitized, SanitizeRequest
from hiera_mcp.model.space import MODEL_FILE, Target
from hiera_mcp.sandbox.devices import gpus
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.sandbox.libraries import installed
from hiera_mcp.sandbox.local import LocalExecutor
from hiera_mcp.server import create_server
from hiera_mcp.settings import Settings
from hiera_mcp.store import Store

T = TypeVar("T")

TASKS = Path(__file__).parent / "recorded"
SUFFIXES = (".cpp", ".cu", ".py")
ALL = 1_000_000
REASON = "The recording tries every pair of space and direction."


class TimedOnly(LocalExecutor):
    """Without compute-sanitizer, which takes longer than all else and has no say in a time."""

    async def sanitize(self, request: SanitizeRequest, notify: Notify) -> Sanitized:
        return Sanitized(results=())


class Recorded(Model):
    """What a recording leaves."""

    machine: dict[str, JsonValue]
    libraries: tuple[str, ...]
    """Maths libraries of the host."""
    contracts: dict[str, Contract]
    """Task id → its contract, with the floor that was measured."""
    memory: Memory


def pairs(task: Path) -> list[Round]:
    """The rounds of a task, one per pair of space and direction."""
    return [_round(folder) for folder in sorted(task.iterdir()) if folder.is_dir() and "." in folder.name]


def _round(folder: Path) -> Round:
    space, _, direction = folder.name.partition(".")
    return Round(
        space=Choice(choice=space, reason=REASON),
        direction=Choice(choice=direction, reason=REASON),
        strategy_reason=REASON,
        candidates=tuple(_submission(path) for path in sorted(folder.iterdir()) if path.suffix in SUFFIXES),
    )


def _submission(path: Path) -> Submission:
    text = path.read_text(encoding="utf-8")
    name = MODEL_FILE if path.suffix == ".py" else path.name
    return Submission(name=path.stem, sources={name: text}, idea=text.splitlines()[0].lstrip("/# "))


def scripts(task: Path, target: str, number: int) -> list[Script]:
    """A run of one round per pair, then one run with all pairs as its rounds; `number` is that of the pass."""
    rounds = pairs(task)
    first = tasks_of(task.parent).index(task) % len(rounds)
    source = (task / "task.py").read_text(encoding="utf-8")
    plans = [*((one,) for one in rounds), (*rounds[first:], *rounds[:first])]
    common = {"name": task.name, "source": source, "target": target, "precision": _precision(source)}
    return [Script.model_validate({**common, "goal": _goal(task.name, plan, number), "rounds": plan}) for plan in plans]


def _precision(source: str) -> str:
    """What a task's line `# precision: …` says."""
    found = re.search(r"^# precision: (\w+)$", source, re.MULTILINE)
    return found[1] if found else "float32"


def tasks_of(folder: Path) -> list[Path]:
    """The tasks of a target, in a fixed order."""
    return sorted(p for p in folder.iterdir() if (p / "task.py").is_file())


def _goal(task: str, plan: Sequence[Round], number: int) -> str:
    """Names a run, so that it is not recorded twice in one pass."""
    return f"Pass {number}: {task}, {', then '.join(f'{r.space.choice}.{r.direction.choice}' for r in plan)}."


async def record(settings: Settings, args: argparse.Namespace) -> bool:
    """Run what the database does not have yet, until the time is over. Whether nothing was left out.

    A run that the server refuses is told and left out.
    """
    end = time.monotonic() + args.seconds
    done = set(with_store(settings, lambda store: [r.goal for r in store.runs(ALL) if r.state == "finished"]))
    tasks = [task for task in tasks_of(TASKS / args.target) if not args.task or task.name in args.task]
    target = gpus()[0].target if args.target == "cuda" else "cpu"
    whole = True
    every = [one for n in range(args.passes) for task in tasks for one in scripts(task, target, n + 1)]
    every.sort(key=lambda script: len(script.rounds) > 1)
    async with in_memory(
        create_server(partial(open_deps, settings, TimedOnly(cache_dir=settings.cache_dir)))
    ) as client:
        for script in (script for script in every if script.goal not in done):
            if time.monotonic() > end:
                print(f"Out of time before: {script.goal}", flush=True)
                return False
            print(script.goal, flush=True)
            whole &= await _recorded_one(client, script)
    return whole


async def _recorded_one(client: Client, script: Script) -> bool:
    try:
        await drive(client, script, _tell)
    except (ToolFailed, RequestError) as e:
        print(f"  left out: {e}", flush=True)
        return False
    return True


def with_store(settings: Settings, use: Callable[[Store], T]) -> T:
    """What `use` finds in the database."""
    store = Store.open(settings.database, settings.blobs)
    try:
        return use(store)
    finally:
        store.close()


def recorded(store: Store, target: Target) -> Recorded:
    """The recording in a database."""
    contracts = [store.contract(c.id) for c in store.contracts()]
    load = [round(x, 2) for x in os.getloadavg()]
    machine = {**describe(), "load_when_written": load}
    return Recorded.model_validate(
        {
            "machine": machine,
            "libraries": [library.name for library in installed(target)],
            "contracts": {c.task.id: c for c in sorted(contracts, key=lambda c: c.task.name)},
            "memory": store.export_memory(),
        }
    )


def _tell(event: Event) -> None:
    if isinstance(event, Evaluated):
        for row in event.rows:
            speedup = f"{row.speedup.median:.2f}×" if row.speedup else row.reason
            print(f"  {row.name}: {row.status} {speedup}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=("cpu", "cuda"), default="cpu", help="where (default: %(default)s)")
    parser.add_argument("--data-dir", type=Path, help="where the runs are recorded (default: a temporary folder)")
    parser.add_argument("--out", type=Path, help="write the recording here")
    parser.add_argument("--task", action="append", default=[], help="only this one; may be given several times")
    parser.add_argument("--passes", type=int, default=1, help="how often (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start no further run after so many")
    args = parser.parse_args()
    if args.target == "cuda" and not gpus():
        parser.error(
            "--target cuda needs an NVIDIA GPU, and this host shows none; choose cpu, or look at CUDA_VISIBLE_DEVICES"
        )
    folder = args.data_dir or Path(tempfile.mkdtemp(prefix="hiera-recorded-"))
    settings = Settings(data_dir=folder)
    whole = anyio.run(record, settings, args)
    if args.out:
        recording = with_store(settings, lambda store: recorded(store, args.target))
        args.out.write_text(recording.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
