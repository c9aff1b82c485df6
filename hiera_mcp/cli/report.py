"""A run on the screen: decisions as they are taken, a table per round, and what came of it."""

from collections.abc import Sequence
from pathlib import Path

from hiera_mcp.cli.output import ProgressLine, duration, ratio, table, wrapped
from hiera_mcp.client.events import ContractBuilt, Decided, Evaluated, Event, Progress, RunStarted
from hiera_mcp.client.report import CandidateRow, ContractView, DecisionRow, RunReport, RunView
from hiera_mcp.model.sanitizer import MEMORY_ERROR
from hiera_mcp.settings import from_environment

HOPELESS = 1e6
"""From here on the number says nothing: elements were not written, or are not numbers."""
HEAD = ("candidate", "status", "time", "speed-up [95 %]", "margin")


class Screen:
    """Shows the events of a run. With `quiet` only the progress line."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._progress = ProgressLine()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Progress):
            self._progress.show(event.message, event.fraction)
            return
        self._progress.clear()
        if not self._quiet:
            print("\n".join(lines_of(event)), flush=True)

    def starting(self) -> None:
        """A server of our own takes a few seconds to start: somebody at a terminal sees why nothing happens."""
        self._progress.note("starting a server")

    def clear(self) -> None:
        """Make room for other output."""
        self._progress.clear()

    def finish(self, report: RunReport) -> None:
        """The end of the run."""
        self._progress.clear()
        if not self._quiet:
            print("\n".join(closing(report)), flush=True)


def lines_of(event: ContractBuilt | RunStarted | Decided | Evaluated) -> list[str]:
    """What is printed for an event."""
    match event:
        case ContractBuilt(contract):
            return contract_lines(contract)
        case RunStarted(run):
            return [f"Run {run.run_id}{_without(run)}", ""]
        case Decided(decision):
            return decision_lines(decision)
        case Evaluated(number, rows):
            return ["", f"Round {number}", *candidate_lines(rows), ""]


def contract_lines(contract: ContractView) -> list[str]:
    """The contract's head as a run shows it: what it is of, and its floor."""
    first = f"Contract {contract.contract_id}: {contract.task} on {contract.target}, {contract.precision}"
    floor = f"  floor {duration(contract.floor.seconds)} per call"
    why = f" ({contract.floor.arithmetic})" if contract.floor.arithmetic else ""
    return [first, *wrapped(floor.strip() + why, "  ")]


def specification_lines(contract: ContractView) -> list[str]:
    """What `contract build` prints: the head, and what a reader wants to know before a line is written.

    Lists come as the server cut them; their last line says what is left out and where it is.
    """
    features = contract.features
    told = {
        "elsewhere": (contract.floor.elsewhere,),
        "case": contract.cases,
        "operator": features.operators,
        "chain": features.chains,
        "library": features.libraries,
        "right when": (contract.tolerance,),
        "trivial outputs": (contract.degeneracy,),
        "note": contract.notes,
    }
    lines = contract_lines(contract)
    for word, texts in told.items():
        for text in filter(None, texts):
            lines += wrapped(text if text.startswith("…") else f"{word}: {text}", "  ")
    return lines


def decision_lines(decision: DecisionRow) -> list[str]:
    head = f"Round {decision.round} {decision.kind}: {decision.choice}"
    told = f"decided by the {decision.decided_by}"
    other = decision.recommended not in ("", decision.choice) and decision.kind != "strategy"
    against = f"; recommended was {decision.recommended}" if other else ""
    said = wrapped(f"predicted: {decision.prediction}", "    ") if decision.prediction else []
    return [f"{head}  ({told}{against})", *wrapped(decision.reason, "    "), *said]


def candidate_lines(rows: Sequence[CandidateRow]) -> list[str]:
    """The table; below it why each candidate failed that did not pass, or that touched memory it must not."""
    lines = table(HEAD, [_cells(row) for row in rows])
    for row in rows:
        if row.status != "passed" or row.reason.startswith(MEMORY_ERROR):
            lines += wrapped(f"{row.name}: {row.reason}", "  ")
    return lines


def _cells(row: CandidateRow) -> tuple[str, ...]:
    time = duration(row.time_s.median if row.time_s else None)
    return (row.name + (" *" if row.is_best else ""), row.status, time, ratio(row.speedup), _margin(row.margin))


def _margin(margin: float | None) -> str:
    if margin is None:
        return "–"
    return f"{margin:.3g}" if margin < HOPELESS else "> 1e6"


def run_lines(run: RunView) -> list[str]:
    """A recorded run, round by round, as it looked while it went on."""
    lines = [f"Run {run.run_id}: {run.task} on {run.target}, {run.state}, round {run.round}{_without(run)}", ""]
    for number in range(1, run.round + 1):
        for decision in run.decisions:
            lines += decision_lines(decision) if decision.round == number else []
        rows = [c for c in run.candidates if c.round == number]
        lines += ["", *candidate_lines(rows), ""] if rows else [f"Round {number}: no candidate yet.", ""]
    return [*lines, *best_lines(run.best), f"Database: {run.database}"]


def _without(run: RunView) -> str:
    return f"; plan: {', '.join(run.plan)}" if run.plan else ""


def best_lines(best: CandidateRow | None) -> list[str]:
    if best is None or best.time_s is None:
        return ["No candidate passed."]
    floor = f", {best.floor_ratio:.1f} times the floor" if best.floor_ratio else ""
    speed = f", {ratio(best.speedup)} against eager PyTorch" if best.speedup else ""
    return [f"Best: {best.name}, {duration(best.time_s.median)}{speed}{floor}"]


def where_lines(run: RunView) -> list[str]:
    """Where the trajectory is; the command repeats a data folder that is not the default one."""
    folder = Path(run.database).parent
    flag = "" if folder == from_environment().data_dir else f" --data-dir {folder}"
    return [f"Trajectory in {run.database}: hiera-mcp runs {run.run_id}{flag}"]


def closing(report: RunReport) -> list[str]:
    """What came of the run, and where it is kept."""
    exported = [f"Exported to {report.export_dir}"] if report.export_dir else []
    took = f"{report.seconds:.0f} s in all"
    return [*best_lines(report.best), *exported, *where_lines(report.run), took]
