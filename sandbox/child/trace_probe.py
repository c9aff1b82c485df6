"""Would an answer that takes no work pass? Real runs of the reference, on smaller sizes where its own would cost too much.

The trials are those of the judge (trials.py), as many as are needed to tell every trivial answer from the right one.
"""

import itertools
import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hiera_mcp.sandbox.child import probe_sizes, trace_forward, trace_load, trace_values
from hiera_mcp.sandbox.child.processor_time import OutOfTime, at_most
from hiera_mcp.sandbox.child.record import Record
from hiera_mcp.sandbox.child.reference import EVAL_NOTE, Reference, ReferenceFailed
from hiera_mcp.sandbox.child.trials import Trials

LIMITS = {"float64": 1e-10, "float32": 1e-4, "float16": 1e-2, "bfloat16": 1e-2}
"""rtol and atol by precision: those of a contract without figures of its own."""
REFERENCE_FACTOR = 4.0
HALVES = ("float16", "bfloat16")

COMFORT, BEGUN = 0.075, 1.9
"""Parts of the budget: estimated time up to which sizes are taken at once; the most that is begun with (estimates are high)."""
AGAIN = 1.5
"""Times the budget, for a first attempt and one on the smallest sizes together."""
EFFICIENCY = 0.4
"""Of the rate of a matrix product, what convolutions and small products reach."""
INIT_S, ELEMENT_S = 8e-9, 5e-8
"""Seconds per parameter, for drawing and copying it; and per element of the inputs in each trial, for drawing, comparing."""
CALL_S = 2e-5
"""Seconds per operator, beside its FLOPs and bytes."""
OWN_TRIALS = 2
"""The first ones, on the task's own draw."""
TRIALS = 6
"""As many tell everything as a rule: two each on the task's own draw, on signed inputs, with parameters drawn anew."""
ORACLE = 3
"""A trial takes so many times as long with a float64 oracle."""


SLOW = "not probed: one run takes too long on this processor"
NO_ORACLE = "compared with the reference's own output: one in float64 takes too long on this processor"


@dataclass(frozen=True)
class Cost:
    """What one run of the reference takes, on the task's own sizes."""

    flops: float
    bytes: float
    """What its operators move."""
    largest: int
    """Bytes of the largest operator."""
    calls: int
    state: int
    """Bytes of parameters and buffers."""


@dataclass(frozen=True)
class Budget:
    """What the probe may take, and how fast this host is."""

    bytes: int
    """No tensor of the probe, and not all parameters together, may be larger."""
    seconds: float
    """Processor time, which a busy host does not lengthen; no further trial when it would end later, and none goes on."""
    bandwidth: float
    """Bytes per second."""
    flops: float
    """FLOP per second."""


@dataclass(frozen=True)
class Probe:
    """Result of the real runs."""

    trivial: dict[str, bool] | None
    """zeros, constant, input_echo, other_inputs → does it pass on the task's own draw?"""
    reason: str = ""
    """Why there was no result; else what limited it."""
    sizes: str = ""
    remedy: str = ""
    """The trials that told what passes on the task's own draw."""
    unverifiable: bool = False
    unfinished: bool = False


class SmallReference(Reference):
    """A reference whose get_inputs() draws fewer elements, under seeds that are the same for each trace."""

    def __init__(self, contract: dict[str, Any], limit: int) -> None:
        super().__init__(contract, "cpu")
        self._limit = limit
        self.plan = probe_sizes.Plan({}, {})
        self._seeds = itertools.count()
        self._settings: Any = None
        module: Any = self._module
        own_settings = module.get_init_inputs
        module.get_init_inputs = lambda: self.plan.settings(own_settings())

    def _seed(self) -> int:
        return next(self._seeds)

    def _raw_inputs(self) -> Any:
        with probe_sizes.drawing(self.plan):
            return self._module.get_inputs()

    def _check_size(self) -> None:
        """Refuse parameters above the limit, by constructing them without data where the constructor lets itself.

        Raises:
            ReferenceFailed: they are larger.
        """
        try:
            with self._torch.device("meta"):
                model = self._module.Model(*self._module.get_init_inputs())
        except Exception:  # noqa: BLE001 - a constructor that needs data: drawing says what it makes
            return
        size = sum(t.numel() * t.element_size() for t in (*model.parameters(), *model.buffers()))
        if size > self._limit:
            raise ReferenceFailed(f"its parameters are {size / 1e9:.3g} GB")

    def fit(self, plan: probe_sizes.Plan) -> dict[str, Any]:
        """Give the contract's only case the shapes that it has under `plan`; the case.

        Raises:
            ReferenceFailed: it does not run on them.
        """
        self.plan, case = plan, self.contract["cases"][0]
        with self._reported("in get_init_inputs()"):
            settings = repr(self._module.get_init_inputs())
        if settings != self._settings:
            self._check_size()
            self.draw_parameters()
            self._settings = settings
        with self._reported("in get_inputs()"):
            shapes = [list(t.shape) for t in self._raw_inputs() if isinstance(t, self._torch.Tensor)]
        own = [t for t in case["inputs"] if t["name"] not in case["draws"]]
        fitting = {t["name"]: {**t, "shape": shape} for t, shape in zip(own, shapes, strict=True)}
        case["inputs"] = [fitting.get(t["name"], t) for t in case["inputs"]]
        inputs = self.draw_inputs(0)
        case["inputs"] = [{**t, "shape": list(x.shape)} for t, x in zip(case["inputs"], inputs, strict=True)]
        outputs = self.outputs(0, inputs)
        case["outputs"] = [{**t, "shape": list(o.shape)} for t, o in zip(case["outputs"], outputs, strict=True)]
        return case


def probe(trace: dict[str, Any], path: Path, precision: str, cost: Cost, budget: Budget) -> Probe:
    """Run the reference as the judge would, until every trivial answer is told, or all is tried, or time is up.

    Args:
        trace: inputs, scalars, forward_order, outputs, parameters and notes of the Trace, as plain data.
        path: the reference's file.
        cost: of one run on the task's own sizes.

    Raises:
        Refused: the reference raises on real data although it did not on fake tensors.
    """
    try:
        return _probe(_contract(trace, path, precision), path, cost, budget)
    except (ReferenceFailed, MemoryError) as e:
        return Probe(None, f"not probed: {e}")
    except RuntimeError as e:  # what torch raises instead of a MemoryError
        if "allocate memory" not in str(e):
            raise
        return Probe(None, "not probed: its runs need more memory than the tracer has")


def _probe(contract: dict[str, Any], path: Path, cost: Cost, budget: Budget) -> Probe:
    start, full = time.process_time(), [(t["name"], t["shape"]) for t in contract["cases"][0]["inputs"]]
    reference = SmallReference(contract, budget.bytes)
    plans = _affordable([shape for _, shape in full], cost, budget)
    if not plans:
        return Probe(
            None, f"not probed: its runs would take too long or more than {budget.bytes / 1e9:.3g} GB, however small"
        )
    found = _first_that_runs(reference, path, full, plans, budget.seconds)
    if not found.unfinished:
        return found
    cheapest = sorted(plans, key=lambda p: _elements([p[0](shape) for _, shape in full]) / p[0].divisor)
    if found.trivial is None:  # operators that are slow in float64 (grouped convolutions) took all the time
        cheapest = [(plan, False) for plan, _ in cheapest]
    left = AGAIN * budget.seconds - (time.process_time() - start)
    return _joined(found, _first_that_runs(reference, path, full, cheapest, left)) if left > 0 else found


def _joined(found: Probe, cheaper: Probe) -> Probe:
    """What passes is told on the larger sizes, where there was time for it; what tells it, on the smaller ones."""
    if found.trivial is None:
        return cheaper
    if cheaper.trivial != found.trivial or cheaper.unfinished:
        return found
    sizes = f"{found.sizes}; what tells them apart was searched for on {cheaper.sizes}"
    return replace(cheaper, sizes=sizes)


def _first_that_runs(
    reference: SmallReference,
    path: Path,
    full: list[tuple[str, list[int]]],
    plans: list[tuple[probe_sizes.Plan, bool]],
    seconds: float,
) -> Probe:
    why = ""
    for plan, with_oracle in plans:
        try:
            with at_most(seconds):
                case = reference.fit(plan)
        except OutOfTime:
            return Probe(None, SLOW, unfinished=True)
        except ReferenceFailed as e:
            if plan.changes_nothing:
                _run_as_it_is(path, reference.contract)
            why = str(e)
            continue
        small = [t["shape"] for t in case["inputs"]]
        return _survey(reference, probe_sizes.in_words(full, small), with_oracle, seconds)
    return Probe(None, f"not probed: on smaller inputs {why}")


def _run_as_it_is(path: Path, contract: dict[str, Any]) -> None:
    """Raise `Refused`, with the line and what to do, for what the reference raises on its own sizes."""
    module = trace_load.load(path)
    model = trace_forward.build_model(module, contract["precision"], EVAL_NOTE in contract["notes"])
    args = [trace_values.cast_to(a, contract["precision"]) for a in trace_load.arguments(module, "get_inputs")]
    trace_load.call("forward()", model, *args)


def _affordable(full: Sequence[Sequence[int]], cost: Cost, budget: Budget) -> list[tuple[probe_sizes.Plan, bool]]:
    """Plans, and whether a float64 oracle fits too: from the one that changes least among the quick ones, then the others."""
    plans = list(probe_sizes.plans(full))
    parts = [_elements([plan(s) for s in full]) / max(1, _elements(full)) for plan in plans]
    states = [cost.state // plan.divisor for plan in plans]
    drawn = [part * _elements(full) for part in parts]
    with_oracle, without = (
        [_seconds(cost, budget, *sizes, trials) for sizes in zip(parts, states, drawn, strict=True)]
        for trials in (TRIALS * ORACLE, TRIALS)
    )
    bytes_of = [
        state + part * cost.largest / plan.divisor for plan, state, part in zip(plans, states, parts, strict=True)
    ]
    fit = [n for n in range(len(plans)) if bytes_of[n] <= budget.bytes and without[n] <= BEGUN * budget.seconds]
    same_model = [n for n in fit if plans[n].divisor == 1]
    comfort = max(COMFORT * budget.seconds, 1.25 * min((with_oracle[n] for n in same_model), default=0.0))
    quick = [n for n in same_model if with_oracle[n] <= comfort]
    slow = sorted(set(same_model) - set(quick), key=lambda n: with_oracle[n])
    other_model = [n for n in fit if plans[n].divisor > 1]
    return [(plans[n], with_oracle[n] <= budget.seconds / 2) for n in (*quick, *slow, *other_model)]


def _seconds(cost: Cost, budget: Budget, part: float, state: int, drawn: float, trials: int) -> float:
    """Estimate for a probe of so many runs, when `part` of its inputs' elements, which are `drawn`, and `state` are left."""
    moved = state + part * max(0.0, cost.bytes - cost.state)
    run = part * cost.flops / (EFFICIENCY * budget.flops) + moved / budget.bandwidth + CALL_S * cost.calls
    return INIT_S * state / 4 + trials * run + TRIALS * ELEMENT_S * drawn


def _elements(shapes: Sequence[Sequence[int]]) -> int:
    return sum(math.prod(s) for s in shapes)


def _survey(reference: SmallReference, sizes: str, with_oracle: bool, seconds: float) -> Probe:
    trials = Trials(reference, Record(), lambda: None, with_oracle)
    seen = _Seen()
    try:
        with at_most(seconds):
            finished = seen.follow(trials, time.process_time() + seconds)
    except OutOfTime:
        finished = False
    if not finished:
        return Probe(seen.own if seen.count >= OWN_TRIALS else None, _unfinished(seen.count), sizes, unfinished=True)
    if not trials.count:
        return Probe(None, "not probed: the reference gives NaN or infinity on all inputs that were tried", sizes)
    remedy = "; ".join(dict.fromkeys(seen.told_by))
    return Probe(seen.own, "" if with_oracle else NO_ORACLE, sizes, remedy, bool(trials.told.untold()))


class _Seen:
    """What passes on the task's own draw, and which trials told it from the right answer."""

    def __init__(self) -> None:
        self.count = 0
        self.own: dict[str, bool] = {}
        self.told_by: list[str] = []

    def follow(self, trials: Trials, deadline: float) -> bool:
        """Go through the trials; false when time would be up before the next one ends."""
        before, last = trials.told.passing(), time.process_time()
        for trial in trials.survey():
            self.count += 1
            passing = trials.told.passing()
            if self.count <= OWN_TRIALS:
                self.own = trials.told.fates()
            elif len(passing) < len(before):
                self.told_by.append(re.sub(r" #\d+", "", trial.label))
            now = time.process_time()
            if trials.told.untold() and 2 * now - last > deadline:
                return False
            before, last = passing, now
        return True


def _unfinished(trials: int) -> str:
    return f"what tells them apart was searched for in {trials} trials only: they are slow on this processor"


def _contract(trace: dict[str, Any], path: Path, precision: str) -> dict[str, Any]:
    """As much of a contract as Reference and Trials need. Half precision is run in float32, which processors are fit for:
    only the limit is then as wide as that of half precision."""
    run = "float32" if precision in HALVES else precision

    def of(specs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**t, "dtype": run if t["dtype"] == precision else t["dtype"]} for t in specs]

    limit = LIMITS[precision]
    case = {k: trace[k] for k in ("scalars", "forward_order")} | {"draws": trace.get("draws", [])}
    case |= {"name": "default", "inputs": of(trace["inputs"]), "outputs": of(trace["outputs"])}
    return {
        "task": {"source": path.read_text(encoding="utf-8")},
        "precision": run,
        "notes": trace["notes"],
        "parameters": of(trace["parameters"]),
        "cases": [case],
        "tolerance": {"rtol": limit, "atol": limit, "reference_factor": REFERENCE_FACTOR},
    }
