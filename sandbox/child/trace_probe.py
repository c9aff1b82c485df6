"""Would an answer that takes no work pass? Real runs of the reference, on smaller sizes where its own would cost too much.

The trials are those of the judge (trials.py), as many as are needed to tell every trivial answer from the right one.
"""

import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hiera_mcp.sandbox.child import probe_sizes, trace_forward, trace_load, trace_values
from hiera_mcp.sandbox.child.host_rates import Rates
from hiera_mcp.sandbox.child.record import Record
from hiera_mcp.sandbox.child.reference import EVAL_NOTE, Reference, ReferenceFailed
from hiera_mcp.sandbox.child.trials import Trials

LIMITS = {"float64": 1e-10, "float32": 1e-4, "float16": 1e-2, "bfloat16": 1e-2}
"""rtol and atol by precision: those of a contract without figures of its own."""
REFERENCE_FACTOR = 4.0
HALVES = ("float16", "bfloat16")

COMFORT_S, BUDGET_S = 0.6, 6.0
"""Estimated seconds up to which sizes are taken at once; the most that is begun with."""
DEADLINE_S = 10.0
"""No further trial when it would end later. In processor time, which a busy host does not lengthen."""
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


class SmallReference(Reference):
    """A reference whose get_inputs() draws fewer elements, under seeds that are the same for each trace."""

    def __init__(self, contract: dict[str, Any]) -> None:
        super().__init__(contract, "cpu")
        self.plan = probe_sizes.Plan({}, {})
        self._seeds = itertools.count()
        self.draw_parameters()

    def _seed(self) -> int:
        return next(self._seeds)

    def _raw_inputs(self) -> Any:
        with probe_sizes.drawing(self.plan):
            return self._module.get_inputs()

    def fit(self, plan: probe_sizes.Plan) -> dict[str, Any]:
        """Give the contract's only case the shapes that it has under `plan`; the case.

        Raises:
            ReferenceFailed: it does not run on them.
        """
        self.plan, case = plan, self.contract["cases"][0]
        with self._reported("in get_inputs()"):
            shapes = [list(t.shape) for t in self._raw_inputs() if isinstance(t, self._torch.Tensor)]
        case["inputs"] = [{**t, "shape": shape} for t, shape in zip(case["inputs"], shapes, strict=True)]
        outputs = self.outputs(0, self.draw_inputs(0))
        case["outputs"] = [{**t, "shape": list(o.shape)} for t, o in zip(case["outputs"], outputs, strict=True)]
        return case


def probe(trace: dict[str, Any], path: Path, precision: str, cost: Cost, rates: Rates, limit: int) -> Probe:
    """Run the reference as the judge would, until every trivial answer is told, or all is tried, or time is up.

    Args:
        trace: inputs, scalars, forward_order, outputs, parameters and notes of the Trace, as plain data.
        path: the reference's file.
        cost: of one run on the task's own sizes.
        limit: bytes; no tensor of the probe, and not all parameters together, may be larger.

    Raises:
        Refused: the reference raises on real data although it did not on fake tensors.
    """
    start = time.process_time()
    if cost.state > limit:
        return Probe(
            None, f"not probed: its parameters ({cost.state / 1e9:.3g} GB) are larger than {limit / 1e9:.3g} GB"
        )
    try:
        return _probe(_contract(trace, path, precision), path, cost, rates, limit, start)
    except (ReferenceFailed, MemoryError) as e:
        return Probe(None, f"not probed: {e}")


def _probe(contract: dict[str, Any], path: Path, cost: Cost, rates: Rates, limit: int, start: float) -> Probe:
    full = [(t["name"], t["shape"]) for t in contract["cases"][0]["inputs"]]
    reference: SmallReference | None = None
    why = "its runs would take too long or too much memory, on smaller inputs too"
    for plan, with_oracle in _affordable([shape for _, shape in full], cost, rates, limit):
        reference = reference or SmallReference(contract)
        try:
            case = reference.fit(plan)
        except ReferenceFailed as e:
            if plan.changes_nothing:
                _run_as_it_is(path, contract)
            why = f"on smaller inputs {e}"
            continue
        sizes = probe_sizes.in_words(full, [t["shape"] for t in case["inputs"]])
        return _survey(reference, sizes, start + DEADLINE_S, with_oracle)
    return Probe(None, f"not probed: {why}")


def _run_as_it_is(path: Path, contract: dict[str, Any]) -> None:
    """Raise `Refused`, with the line and what to do, for what the reference raises on its own sizes."""
    module = trace_load.load(path)
    model = trace_forward.build_model(module, contract["precision"], EVAL_NOTE in contract["notes"])
    args = [trace_values.cast_to(a, contract["precision"]) for a in trace_load.arguments(module, "get_inputs")]
    trace_load.call("forward()", model, *args)


def _affordable(
    full: Sequence[Sequence[int]], cost: Cost, rates: Rates, limit: int
) -> list[tuple[probe_sizes.Plan, bool]]:
    """Plans, and whether a float64 oracle fits too: from the one that changes least among the quick ones, then the others."""
    plans = list(probe_sizes.plans(full))
    parts = [_elements([plan(s) for s in full]) / max(1, _elements(full)) for plan in plans]
    with_oracle, without = (
        [_seconds(cost, rates, part, trials, _elements(full)) for part in parts] for trials in (TRIALS * ORACLE, TRIALS)
    )
    fit = [n for n, part in enumerate(parts) if cost.state + part * cost.largest <= limit and without[n] <= BUDGET_S]
    comfort = max(COMFORT_S, 1.25 * min((with_oracle[n] for n in fit), default=0.0))
    first = [n for n in fit if with_oracle[n] <= comfort]
    rest = sorted(set(fit) - set(first), key=lambda n: with_oracle[n])
    return [(plans[n], with_oracle[n] <= BUDGET_S / 2) for n in (*first, *rest)]


def _seconds(cost: Cost, rates: Rates, part: float, trials: int, drawn: int) -> float:
    """Estimate for a probe of so many runs when inputs have `part` of the `drawn` elements."""
    moved = cost.state + part * max(0.0, cost.bytes - cost.state)
    run = part * cost.flops / (EFFICIENCY * rates.flops) + moved / rates.bandwidth + CALL_S * cost.calls
    return INIT_S * cost.state / 4 + trials * run + TRIALS * ELEMENT_S * part * drawn


def _elements(shapes: Sequence[Sequence[int]]) -> int:
    return sum(math.prod(s) for s in shapes)


def _survey(reference: SmallReference, sizes: str, deadline: float, with_oracle: bool) -> Probe:
    trials = Trials(reference, Record(), lambda: None, with_oracle)
    own: dict[str, bool] = {}
    told_by: list[str] = []
    before, last = trials.told.passing(), time.process_time()
    for trial in trials.survey():
        passing = trials.told.passing()
        if trials.count <= OWN_TRIALS:
            own = trials.told.fates()
        elif len(passing) < len(before):
            told_by.append(trial.label)
        now = time.process_time()
        if trials.told.untold() and 2 * now - last > deadline:
            return Probe(own if trials.count >= OWN_TRIALS else None, _unfinished(trials), sizes)
        before, last = passing, now
    if not trials.count:
        return Probe(None, "not probed: the reference gives NaN or infinity on all inputs that were tried", sizes)
    return Probe(own, "" if with_oracle else NO_ORACLE, sizes, "; ".join(told_by), bool(trials.told.untold()))


def _unfinished(trials: Trials) -> str:
    return f"what tells them apart was searched for in {trials.count} trials only: they are slow on this processor"


def _contract(trace: dict[str, Any], path: Path, precision: str) -> dict[str, Any]:
    """As much of a contract as Reference and Trials need. Half precision is run in float32, which processors are fit for:
    only the limit is then as wide as that of half precision."""
    run = "float32" if precision in HALVES else precision

    def of(specs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**t, "dtype": run if t["dtype"] == precision else t["dtype"]} for t in specs]

    limit = LIMITS[precision]
    case = {k: trace[k] for k in ("scalars", "forward_order")}
    case |= {"name": "default", "inputs": of(trace["inputs"]), "outputs": of(trace["outputs"])}
    return {
        "task": {"source": path.read_text(encoding="utf-8")},
        "precision": run,
        "notes": trace["notes"],
        "parameters": of(trace["parameters"]),
        "cases": [case],
        "tolerance": {"rtol": limit, "atol": limit, "reference_factor": REFERENCE_FACTOR},
    }
