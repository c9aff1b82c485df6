"""Real runs of the reference: would a trivial output pass? And what can this host's processor do?"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hiera_mcp.sandbox.child import trace_forward, trace_load, trace_values

TOLERANCE = 1e-4
"""rtol and atol of the probe."""

REFERENCE_FACTOR = 4.0
"""The limit is never below this multiple of the reference's own error (Tolerance.reference_factor)."""

HALVES = ("float16", "bfloat16")

SECONDS = 15.0
"""No probe when the estimated time of its runs is longer."""


@dataclass(frozen=True)
class Rates:
    """What this host's processor reached, with torch's number of threads."""

    bandwidth: float
    """Bytes per second."""
    flops: float
    """FLOP per second."""


def rates(working_set: int) -> Rates:
    """Best bandwidth of a copy and of a read-only sum on as many bytes as the task moves (1 to 128 MiB), and the best
    rate of a float32 matrix product.

    Best, not mean: a floor must not be too high. On a busy host all threads together hardly ever run undisturbed, so
    one thread is measured too, by its own processor time, which waiting does not lengthen.
    """
    import torch

    threads = torch.get_num_threads()
    together = _rates(working_set, time.perf_counter)
    torch.set_num_threads(1)
    try:
        alone = _rates(working_set, time.thread_time)
    finally:
        torch.set_num_threads(threads)
    return Rates(max(together.bandwidth, alone.bandwidth), max(together.flops, alone.flops * threads))


def _rates(working_set: int, clock: Callable[[], float]) -> Rates:
    import torch

    n = max(1 << 20, min(working_set, 128 << 20)) // 8
    source, sink = torch.ones(n), torch.zeros(n)
    copy = 8 * n / best_seconds(lambda: sink.copy_(source), clock)
    read = 4 * n / best_seconds(lambda: source.sum(), clock)
    a = torch.ones(512, 512)
    product = 2 * 512**3 / best_seconds(lambda: a @ a, clock)
    return Rates(max(copy, read), product)


def best_seconds(function: Callable[[], Any], clock: Callable[[], float], budget: float = 0.05) -> float:
    """Shortest of at least three calls, within about `budget` seconds."""
    function()
    best, end, calls = float("inf"), time.perf_counter() + budget, 0
    while calls < 3 or time.perf_counter() < end:
        start = clock()
        function()
        best = min(best, clock() - start)
        calls += 1
    return max(best, 1e-9)


@dataclass(frozen=True)
class Probe:
    """Result of the real runs."""

    trivial: dict[str, bool] | None
    reason: str = ""
    """Why there was none; else what else the runs showed."""


def why_not(total: int, largest: int, flops: float, limit: int, peak: float, precision: str) -> str:
    """Why real runs would cost too much; the empty string when they may be made."""
    if total > limit or largest > 2 * limit:
        return f"not probed: its data ({max(total, largest) / 1e9:.3g} GB) is larger than {limit / 1e9:.3g} GB"
    slow = 20.0 if precision in HALVES else 1.0
    seconds = 5 * slow * flops / peak
    if seconds > SECONDS:
        return f"not probed: its runs would take about {seconds:.0f} s on this processor"
    return ""


def probe(path: Path, precision: str, evaluate: bool) -> Probe:
    """Run the reference on two draws, and in float64 once, and compare trivial outputs with the result.

    An output y passes when |y - oracle| <= rtol·|oracle| + atol·rms(oracle) everywhere, and the limit is never below
    REFERENCE_FACTOR times the reference's own error.

    Raises:
        Refused: the reference raises on real data although it did not on fake tensors. (Not in half precision, which a
            processor may not support where a GPU does.)
    """
    import torch

    try:
        with torch.no_grad():
            return _probe(path, precision, evaluate)
    except trace_load.Refused as e:
        if precision not in HALVES:
            raise
        return Probe(None, f"not probed: a run on this processor failed: {e.what}")


def _probe(path: Path, precision: str, evaluate: bool) -> Probe:
    import torch

    module = trace_load.load(path)
    model = _seeded_model(module, precision, evaluate)
    inputs = [_draw(module, precision, seed) for seed in (1, 2)]
    first, again, other = (_run(model, args) for args in (inputs[0], inputs[0], inputs[1]))
    if not _same(first, again):
        return Probe(None, "not probed: a second call on the same inputs gave another output; forward() has a state")
    oracle = _oracle(module, inputs[0], precision, evaluate) or [t.double() for t in first]
    limits = [_limit(o, r.double()) for o, r in zip(oracle, first, strict=True)]
    trivial = {
        name: _all_pass(outputs, oracle, limits)
        for name, outputs in {
            "zeros": [torch.zeros_like(o) for o in oracle],
            "constant": [torch.full_like(o, float(o.mean())) for o in oracle],
            "input_echo": _echo(inputs[0], oracle),
            "other_inputs": [t.double() for t in other],
        }.items()
    }
    finite = all(bool(o.isfinite().all()) for o in oracle)
    return Probe(trivial, "" if finite else "the reference's output holds NaN or infinity")


def _seeded_model(module: Any, precision: str, evaluate: bool) -> Any:
    trace_values.seed(0)
    return trace_forward.build_model(module, precision, evaluate)


def _draw(module: Any, precision: str, seed: int) -> list[Any]:
    trace_values.seed(seed)
    return [trace_values.cast_to(a, precision) for a in trace_load.arguments(module, "get_inputs")]


def _run(model: Any, args: list[Any]) -> list[Any]:
    """The outputs for copies of the arguments, so that a forward() that writes to its inputs spoils nothing."""
    import torch

    copies = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
    result = trace_load.call("forward()", model, *copies)
    return [t.clone() for _, t in trace_values.output_tensors(result)]


def _oracle(module: Any, args: list[Any], precision: str, evaluate: bool) -> list[Any] | None:
    """The outputs in float64 for the same parameters and inputs; None where the reference insists on its type."""
    try:
        model = _seeded_model(module, precision, evaluate).double()
        return [t.double() for t in _run(model, [trace_values.cast_to(a, "float64") for a in args])]
    except trace_load.Refused:
        return None


def _limit(oracle: Any, reference: Any) -> Any:
    finite = oracle[oracle.isfinite()]
    rms = float(finite.square().mean().sqrt()) if finite.numel() else 0.0
    own = (reference - oracle).abs()
    own_error = float(own[own.isfinite()].max()) if own.isfinite().any() else 0.0
    return (TOLERANCE * oracle.abs() + TOLERANCE * rms).clamp_min(REFERENCE_FACTOR * own_error)


def _all_pass(outputs: list[Any] | None, oracle: list[Any], limits: list[Any]) -> bool:
    if outputs is None:
        return False
    return all(_passes(y, o, limit) for y, o, limit in zip(outputs, oracle, limits, strict=True))


def _passes(y: Any, oracle: Any, limit: Any) -> bool:
    if y.shape != oracle.shape:
        return False
    same = (y == oracle) | (y.isnan() & oracle.isnan())
    return bool((same | ((y - oracle).abs() <= limit)).all())


def _echo(args: list[Any], oracle: list[Any]) -> list[Any] | None:
    """For each output an input of its size, preferring the first; None when some output has no such input."""
    import torch

    found: list[Any] = []
    for o in oracle:
        same = [a for a in args if isinstance(a, torch.Tensor) and a.numel() == o.numel() and not a.is_complex()]
        if not same:
            return None
        echoes = [a.double().reshape(o.shape) for a in same]
        found.append(min(echoes, key=lambda e: float((e - o).abs().max())))
    return found


def _same(first: list[Any], again: list[Any]) -> bool:
    """Whether two runs agree up to what another order of summation does."""
    one, two = ([t.double() for t in outputs] for outputs in (first, again))
    return _all_pass(two, one, [10 * _limit(o, o) for o in one])
