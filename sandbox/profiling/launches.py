"""Raw launches → the model's: our names, null with a reason, stalls as shares, source lines, NVIDIA's findings. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from hiera_mcp.model.profile import Launch, Metric, Stall
from hiera_mcp.sandbox.profiling.lines import source_lines
from hiera_mcp.sandbox.profiling.metrics import METRICS, STALL_PREFIX, STALL_SUFFIX
from hiera_mcp.sandbox.profiling.raw import RawLaunch
from hiera_mcp.sandbox.profiling.rules import hints

_SECONDS = {
    "ns": 1e-9,
    "nsecond": 1e-9,
    "us": 1e-6,
    "usecond": 1e-6,
    "ms": 1e-3,
    "msecond": 1e-3,
    "s": 1.0,
    "second": 1.0,
}


def launches(found: Sequence[RawLaunch], sources: Mapping[str, str]) -> tuple[Launch, ...]:
    """The profiled launches of one call, in their order.

    Args:
        sources: the candidate's files by name, for the text of its lines.
    """
    total = sum(seconds_of(raw) or 0.0 for raw in found)
    return tuple(_launch(raw, total, sources) for raw in found)


def seconds_of(raw: RawLaunch) -> float | None:
    """The kernel's time; ncu's base unit is the nanosecond."""
    name = METRICS["time"]
    value = raw.metrics.get(name)
    return None if value is None else value * _SECONDS.get(raw.units.get(name, ""), 1e-9)


def _launch(raw: RawLaunch, total: float, sources: Mapping[str, str]) -> Launch:
    seconds = seconds_of(raw)
    return Launch(
        kernel=raw.kernel,
        share=round(seconds / total, 4) if seconds and total else 0.0,
        seconds=seconds,
        metrics=tuple(_metric(raw, name) for name in METRICS if name != "time"),
        stalls=tuple(_stalls(raw)),
        lines=source_lines(raw.instructions, sources),
        hints=hints(raw.rules),
    )


def _metric(raw: RawLaunch, name: str) -> Metric:
    theirs = METRICS[name]
    value = raw.metrics.get(theirs)
    reason = "" if value is not None else f"ncu gave no value for {theirs} on this GPU"
    return Metric(name=name, value=value, unit=raw.units.get(theirs, ""), origin="counter", reason=reason)


def _stalls(raw: RawLaunch) -> Iterator[Stall]:
    cycles = {
        name.removeprefix(STALL_PREFIX).removesuffix(STALL_SUFFIX): value
        for name, value in raw.metrics.items()
        if name.startswith(STALL_PREFIX) and name.endswith(STALL_SUFFIX) and "_not_issued" not in name
    }
    total = sum(cycles.values())
    for reason in sorted(cycles, key=lambda r: -cycles[r]):
        share = cycles[reason] / total if total else 0.0
        yield Stall(reason=reason, cycles=round(cycles[reason], 4), share=round(share, 4))
