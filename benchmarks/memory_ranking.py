"""Does memory of other tasks rank spaces and directions better than the rubric alone does?

    python -m benchmarks.memory_ranking [--runs FILE]… [--out FILE] [--page docs/planning.md]

Without --runs all recordings of benchmarks/results. Leave one task out: each recorded task is planned at its first step, once with the rounds of all other tasks as memory and
once without, and the scores are compared with what its own runs gained. *Regret* is how much more the best option that was
tried gained than the recommended one, as a factor; *tau* is Kendall's tau-b between scores and gains. The gain of a
direction is the mean (on the log scale) of its measurements over eager PyTorch, and never below 1: whoever gains nothing
keeps what was there. That of a space is the mean over the directions that were tried in it, which is what a round with any of
them gains; beside it stands the greatest, which is what a run gains that tries them all (and which favours a space in which
more were tried). Spaces are nested, but a candidate counts for the space whose means it uses, else the largest one would always
win. Options that no run tried are left out. The interval is the 95 % percentile interval of 10,000 bootstrap samples of the
tasks. Nothing here is timed, so it runs anywhere; the gains are those of the host that the file names.
"""

import argparse
import json
import math
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.record_runs import Recorded
from hiera_mcp.model.contract import Contract
from hiera_mcp.model.memory import RoundRecord
from hiera_mcp.model.plan import DecisionKind, OptionScore
from hiera_mcp.planning.direction import score_directions
from hiera_mcp.planning.evidence import Evidence, gather
from hiera_mcp.planning.memory import cells_of
from hiera_mcp.planning.rubrics import Rubric, load_rubric
from hiera_mcp.planning.space import score_spaces
from hiera_mcp.planning.tables import table

MARK = "memory-ranking"
RESULTS, RECORDING = Path(__file__).parent / "results", "recorded_runs_"
SAMPLES = 10_000
CLOSE = math.log(1.05)
"""A recommendation counts as the best one within 5 %."""
SPACE, BEST_OF_SPACE, DIRECTION = "space", "best of a space", "direction"
SPACE_GAINS: Mapping[str, Callable[[Iterable[float]], float]] = {SPACE: fmean, BEST_OF_SPACE: max}
"""Decision → what its gain is of the gains of the directions that were tried in a space."""
KINDS = (SPACE, BEST_OF_SPACE, DIRECTION)
Gains = Mapping[str, float]
"""Option → log gain."""
Scores = Mapping[str, float]


@dataclass(frozen=True)
class Ranked:
    """One decision of one task, ranked by one method."""

    task: str
    decision: str
    regret: float
    """Log scale."""
    tau: float | None
    """None where all gains are equal."""


def gains_of(
    records: Sequence[RoundRecord],
    option_of: Callable[[RoundRecord], str | None],
    of_pairs: Callable[[Iterable[float]], float] = fmean,
) -> dict[str, float]:
    """What each option gained over eager PyTorch: measurements of a pair of space and direction are averaged, then pairs."""
    pairs: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for r in records:
        option = option_of(r)
        if option is not None:
            pairs[option][f"{r.space} {r.direction}"].append(0.0 if r.best is None else math.log(r.best.median))
    return {o: of_pairs(max(0.0, fmean(logs)) for logs in found.values()) for o, found in sorted(pairs.items())}


@dataclass(frozen=True)
class Method:
    """A way to score options."""

    name: str
    remembers: bool
    weight: float | None = None
    """Greatest weight of memory; None: the rubric's."""
    alone: bool = False
    """Whether memory is all that counts."""

    def rubric(self, kind: DecisionKind) -> Rubric:
        rubric = load_rubric(kind)
        if self.weight is None:
            return rubric
        changed = {"weight": self.weight}
        criteria = [c.model_copy(update=changed) if c.id == "memory" else c for c in rubric.criteria]
        return rubric.model_copy(update={"criteria": tuple(criteria)})

    def scores(self, options: Sequence[OptionScore]) -> Scores:
        return {o.option: _memory(o) if self.alone else o.total for o in options if not o.gates}


def _memory(option: OptionScore) -> float:
    return next(c.score for c in option.criteria if c.criterion == "memory") or 0.0


AT_RANDOM = "at random"
WITHOUT, WITH = Method("without memory", False), Method("with memory", True)
METHODS = (WITHOUT, WITH, Method("memory alone", True, alone=True))
OTHER_WEIGHTS = (1.0, 2.0, 6.0, 12.0)


def decisions(
    contract: Contract, records: Sequence[RoundRecord], evidence: Callable[..., Evidence], method: Method
) -> Iterator[tuple[str, Gains, Scores]]:
    """The decisions of a task of which at least two options were tried: gains, and scores under some evidence."""
    spaces = score_spaces(evidence(), method.rubric("space"))
    found = [(name, gains_of(records, lambda r: r.space, of_pairs), spaces) for name, of_pairs in SPACE_GAINS.items()]
    for space in contract.spaces:
        gains = gains_of([r for r in records if r.space is space], lambda r: r.direction)
        scored = score_directions(evidence(space=space), method.rubric("direction"))
        found.append((f"{DIRECTION} in {space}", gains, scored))
    for decision, gains, options in found:
        if len(gains) > 1:
            yield decision, gains, method.scores(options)


def ranked(task: str, decision: str, gains: Gains, scores: Scores) -> Ranked:
    """How well the scores rank what was gained; among equal scores the first option is recommended, as by the planner."""
    options = [o for o in scores if o in gains]
    chosen = max(options, key=lambda o: scores[o])
    regret = max(gains[o] for o in options) - gains[chosen]
    return Ranked(task, decision, regret, kendall([scores[o] for o in options], [gains[o] for o in options]))


def kendall(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Kendall's tau-b of scores `a` and gains `b`: None when the gains have no order, 0 when only the scores have none."""
    pairs = [(i, j) for i in range(len(a)) for j in range(i)]
    signs = [(_sign(a[i] - a[j]), _sign(b[i] - b[j])) for i, j in pairs]
    scored, gained = sum(s != 0 for s, _ in signs), sum(t != 0 for _, t in signs)
    if not gained:
        return None
    return sum(s * t for s, t in signs) / math.sqrt(scored * gained) if scored else 0.0


def _sign(x: float) -> int:
    return (x > 0) - (x < 0)


def leave_one_task_out(recorded: Recorded, method: Method) -> list[Ranked]:
    """Every decision of every task, with the rounds of all other tasks as memory if the method remembers."""
    found: list[Ranked] = []
    for task_id, contract in recorded.contracts.items():
        own = [r for r in recorded.memory.rounds if r.task_id == task_id]
        cells = cells_of(r for r in recorded.memory.rounds if r.task_id != task_id) if method.remembers else ()
        evidence = partial(gather, contract, libraries=recorded.libraries, memory=cells)
        found += [ranked(_name(contract), *one) for one in decisions(contract, own, evidence, method)]
    return found


def _name(contract: Contract) -> str:
    return f"{contract.task.name} on {contract.target}"


def summary(rows: Sequence[Ranked]) -> dict[str, float]:
    """Means over the decisions; the regret as a factor."""
    taus = [r.tau for r in rows if r.tau is not None]
    hits = fmean(r.regret < CLOSE for r in rows)
    return {"regret": math.exp(fmean(r.regret for r in rows)), "top_1": hits, "tau": fmean(taus) if taus else 0.0}


def difference(better: Sequence[Ranked], than: Sequence[Ranked]) -> dict[str, object]:
    """How much less regret and how much more tau, per decision, with bootstrap intervals over the tasks."""
    tasks = sorted({r.task for r in better})
    pairs = [(task, a, b) for task in tasks for a, b in zip(better, than, strict=True) if a.task == task]
    regrets = [(task, b.regret - a.regret) for task, a, b in pairs]
    taus = [(task, a.tau - b.tau) for task, a, b in pairs if a.tau is not None and b.tau is not None]
    return {"regret_saved_log": _bootstrap(regrets), **({"tau_gained": _bootstrap(taus)} if taus else {})}


def _bootstrap(rows: Sequence[tuple[str, float]]) -> dict[str, float]:
    by_task: dict[str, list[float]] = defaultdict(list)
    for task, value in rows:
        by_task[task].append(value)
    draw, tasks, means = random.Random(1), sorted(by_task), list[float]()
    for _ in range(SAMPLES):
        means.append(fmean([v for task in draw.choices(tasks, k=len(tasks)) for v in by_task[task]]))
    means.sort()
    mean = fmean(v for _, v in rows)
    return {"mean": mean, "low": means[int(0.025 * SAMPLES)], "high": means[int(0.975 * SAMPLES)]}


def chance(recorded: Recorded) -> list[Ranked]:
    """What choosing at random would lose on average."""
    found: list[Ranked] = []
    for task_id, contract in recorded.contracts.items():
        own = [r for r in recorded.memory.rounds if r.task_id == task_id]
        evidence = partial(gather, contract, libraries=recorded.libraries)
        for decision, gains, scores in decisions(contract, own, evidence, WITHOUT):
            tried = [gains[o] for o in scores if o in gains]
            found.append(Ranked(_name(contract), decision, max(tried) - fmean(tried), None))
    return found


def repeatability(recorded: Recorded) -> float:
    """Mean tau between measurements of the same candidates in runs of one round and in runs of all of them.

    A ranking that knew one of the two would not do better on the other.
    """
    taus: list[float | None] = []
    for task_id in recorded.contracts:
        own = [r for r in recorded.memory.rounds if r.task_id == task_id]
        long = {r.run_id for r in own if r.round > 1}
        once, again = (_means([r for r in own if (r.run_id in long) is it]) for it in (False, True))
        both = sorted(once.keys() & again.keys())
        taus.append(kendall([once[key] for key in both], [again[key] for key in both]))
    return fmean(tau for tau in taus if tau is not None)


def _means(records: Sequence[RoundRecord]) -> dict[str, float]:
    """Pair of space and direction → its mean gain over eager PyTorch (log scale)."""
    logs: dict[str, list[float]] = defaultdict(list)
    for r in records:
        logs[f"{r.space} {r.direction}"].append(0.0 if r.best is None else math.log(r.best.median))
    return {pair: fmean(found) for pair, found in logs.items()}


def measured(recorded: Recorded) -> dict[str, Any]:
    """All figures, by kind of decision."""
    rows = {m.name: leave_one_task_out(recorded, m) for m in METHODS}
    heavier = {f"weight {w:g}": leave_one_task_out(recorded, Method("", True, weight=w)) for w in OTHER_WEIGHTS}
    report: dict[str, Any] = {"tasks": len(recorded.contracts), "rounds": len(recorded.memory.rounds)}
    report["tau_of_two_measurements"] = repeatability(recorded)
    every = {**rows, AT_RANDOM: chance(recorded), **heavier}
    for kind in KINDS:
        part = {name: [r for r in found if r.decision.startswith(kind)] for name, found in every.items()}
        report[kind] = {
            "decisions": len(part[WITH.name]),
            **{name: summary(found) for name, found in part.items()},
            "with_against_without": difference(part[WITH.name], part[WITHOUT.name]),
            "with_against_random": difference(part[WITH.name], part[AT_RANDOM]),
        }
    kinds = (SPACE, DIRECTION)
    both = zip(rows[WITH.name], rows[WITHOUT.name], strict=True)
    report["pairs"] = [[asdict(a), asdict(b)] for a, b in both if a.decision.startswith(kinds)]
    return report


def together(reports: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """The same over the decisions of all recordings; those of one task are drawn together, also of several recordings."""
    every = [(Ranked(**a), Ranked(**b)) for report in reports for a, b in report["pairs"]]
    return {"decisions": len(every), **difference([a for a, _ in every], [b for _, b in every])}


def section(report: Mapping[str, Any]) -> str:
    """The figures as docs/planning.md shows them."""
    head = ("recording", "decision", "number", "regret", "best one recommended", "tau", "regret at random")
    rows = [_row(name, kind, one) for name, one in report["recordings"].items() for kind in (SPACE, DIRECTION)]
    every = report["together"]
    tau = every["tau_gained"]
    what = (
        f"Without memory → with memory. All {every['decisions']} decisions together: with memory the regret is "
        f"{_less(every)} smaller, tau greater by {tau['mean']:.2f} [{tau['low']:.2f}, {tau['high']:.2f}]."
    )
    return "\n\n".join([table(head, rows), what])


def _row(name: str, kind: str, report: Mapping[str, Any]) -> tuple[str, ...]:
    part = report[kind]
    without, remembered = part[WITHOUT.name], part[WITH.name]
    regret, top, tau = (
        f"{without[k]:{f}} → {remembered[k]:{f}}" for k, f in (("regret", ".3f"), ("top_1", ".0%"), ("tau", ".2f"))
    )
    return name, kind, str(part["decisions"]), regret, top, tau, f"{part[AT_RANDOM]['regret']:.2f}"


def _less(compared: Mapping[str, Any]) -> str:
    mean, low, high = (math.exp(compared["regret_saved_log"][x]) for x in ("mean", "low", "high"))
    return f"{mean:.3f}× [{low:.3f}, {high:.3f}]"


def with_section(page: str, text: str) -> str:
    """The page with the text between its two marks replaced."""
    before, found, rest = page.partition(f"<!-- {MARK} -->\n")
    _, end, after = rest.partition(f"<!-- /{MARK} -->")
    if not found or not end:
        raise ValueError(f"the page has no section {MARK}")
    return f"{before}{found}\n{text}\n\n{end}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, action="append", help="a recording of benchmarks.record_runs")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--page", type=Path, help="write them into this page, between its marks")
    args = parser.parse_args()
    files = args.runs or sorted(RESULTS.glob(f"{RECORDING}*.json"), reverse=True)
    found = {path.stem.removeprefix(RECORDING): _report(path) for path in files}
    report = {"recordings": found, "together": together([*found.values()])}
    if args.out:
        args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if args.page:
        args.page.write_text(with_section(args.page.read_text(encoding="utf-8"), section(report)), encoding="utf-8")
    print(section(report))
    return 0


def _report(path: Path) -> dict[str, Any]:
    recording = Recorded.model_validate_json(path.read_text(encoding="utf-8"))
    return {"recorded_on": recording.machine, **measured(recording)}


if __name__ == "__main__":
    sys.exit(main())
