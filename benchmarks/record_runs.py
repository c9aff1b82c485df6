"""Real runs over the small tasks of `benchmarks/recorded`, for benchmarks/memory_ranking.py.

    python -m benchmarks.record_runs [--data-dir DIR] [--task NAME] [--passes N] [--out FILE]

A task's folder holds `task.py` and, per pair of space and direction, a folder `SPACE.DIRECTION` of candidates. Each pair
becomes a run of one round, so that its gain is over eager PyTorch; in addition all pairs of a task become the rounds of one
run, where each gains over what was there before. Their order is rotated from task to task, so that none always comes first. Everything runs on the `cpu` target of
this host, through the server, as any client's run. Runs that the database has already are passed over, so that a recording
that was stopped goes on; --passes makes each of them several times, since a busy host measures badly. The result is what `hiera-mcp kb export` writes, with the tasks' contracts and the host.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import anyio
from pydantic import JsonValue

from benchmarks.machine import describe
from hiera_mcp.cli.connection import local
from hiera_mcp.client.drive import drive
from hiera_mcp.client.events import Evaluated, Event
from hiera_mcp.client.script import Choice, Round, Script, Submission
from hiera_mcp.model.base import Model
from hiera_mcp.model.contract import Contract
from hiera_mcp.model.memory import Memory
from hiera_mcp.model.space import MODEL_FILE
from hiera_mcp.sandbox.libraries import installed
from hiera_mcp.settings import Settings
from hiera_mcp.store import Store

T = TypeVar("T")

TASKS = Path(__file__).parent / "recorded"
RESULTS = Path(__file__).parent / "results" / "recorded_runs.json"
ALL = 1_000_000
REASON = "The recording tries every pair of space and direction."


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
        candidates=tuple(_submission(path) for path in sorted(folder.iterdir()) if path.suffix in (".cpp", ".py")),
    )


def _submission(path: Path) -> Submission:
    text = path.read_text(encoding="utf-8")
    name = MODEL_FILE if path.suffix == ".py" else path.name
    return Submission(name=path.stem, sources={name: text}, idea=text.splitlines()[0].lstrip("/# "))


def scripts(task: Path, number: int) -> list[Script]:
    """A run of one round per pair, then one run with all pairs as its rounds; `number` is that of the pass."""
    rounds = pairs(task)
    first = _tasks().index(task) % len(rounds)
    source = (task / "task.py").read_text(encoding="utf-8")
    plans = [*((one,) for one in rounds), (*rounds[first:], *rounds[:first])]
    return [
        Script(name=task.name, source=source, target="cpu", goal=_goal(task.name, plan, number), rounds=plan)
        for plan in plans
    ]


def _tasks() -> list[Path]:
    return sorted(p for p in TASKS.iterdir() if (p / "task.py").is_file())


def _goal(task: str, plan: Sequence[Round], number: int) -> str:
    """Names a run, so that it is not recorded twice in one pass."""
    return f"Pass {number}: {task}, {', then '.join(f'{r.space.choice}.{r.direction.choice}' for r in plan)}."


async def record(settings: Settings, names: list[str], passes: int) -> None:
    """Run what the database does not have yet."""
    done = set(with_store(settings, lambda store: [r.goal for r in store.runs(ALL) if r.state == "finished"]))
    tasks = [task for task in _tasks() if not names or task.name in names]
    async with local(settings) as client:
        every = (script for n in range(passes) for task in tasks for script in scripts(task, n + 1))
        for script in (script for script in every if script.goal not in done):
            print(script.goal, flush=True)
            await drive(client, script, _tell)


def with_store(settings: Settings, use: Callable[[Store], T]) -> T:
    """What `use` finds in the database."""
    store = Store.open(settings.database, settings.blobs)
    try:
        return use(store)
    finally:
        store.close()


def recorded(store: Store) -> Recorded:
    """The recording in a database."""
    contracts = [store.contract(c.id) for c in store.contracts()]
    load = [round(x, 2) for x in os.getloadavg()]
    machine = {**describe(), "load_when_written": load}
    return Recorded.model_validate(
        {
            "machine": machine,
            "libraries": [library.name for library in installed("cpu")],
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
    parser.add_argument("--data-dir", type=Path, help="where the runs are recorded (default: a temporary folder)")
    parser.add_argument("--out", type=Path, help="write the recording here")
    parser.add_argument("--task", action="append", default=[], help="only this one; may be given several times")
    parser.add_argument("--passes", type=int, default=1, help="how often (default: %(default)s)")
    args = parser.parse_args()
    folder = args.data_dir or Path(tempfile.mkdtemp(prefix="hiera-recorded-"))
    settings = Settings(data_dir=folder)
    anyio.run(record, settings, args.task, args.passes)
    if args.out:
        args.out.write_text(with_store(settings, recorded).model_dump_json(indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
