"""The least time that one call can take on the target (speed of light; Williams et al. 2009), arithmetic shown."""

from hiera_mcp.contracts.features import compulsory_bytes, matrix_flops
from hiera_mcp.contracts.units import Unit, matrix_unit, vector_unit
from hiera_mcp.model.contract import Floor, Precision
from hiera_mcp.model.hardware import Peaks
from hiera_mcp.model.work import Trace


def floor_of(trace: Trace, precision: Precision, peaks: Peaks, allow_tf32: bool, device: str = "") -> Floor:
    """max(bytes / bandwidth, FLOPs / rate of the fastest legal unit).

    Bytes are what a fully fused kernel must move, so the memory part binds every candidate. FLOPs are those of the
    reference's algorithm: a candidate that needs fewer (Winograd, skipped zeros) may go below the math part. Units
    work side by side, so the math part is the slower of matrix and element by element work, not their sum.
    """
    moved = compulsory_bytes(trace)
    memory = moved / peaks.bandwidth
    work = _slowest(trace, precision, peaks, allow_tf32)
    math = work[0] / work[1].flops
    return Floor(
        device=device,
        seconds=max(memory, math),
        bound="memory" if memory >= math else "math",
        memory_seconds=memory,
        math_seconds=math,
        bandwidth=peaks.bandwidth,
        peak_flops=work[1].flops,
        basis=peaks.basis,
        arithmetic=(
            f"max({quantity(moved, 'B')} / {quantity(peaks.bandwidth, 'B/s')} = {duration(memory)}, "
            f"{quantity(work[0], 'FLOP')} / {quantity(work[1].flops, 'FLOP/s')} ({work[1].name}) = {duration(math)})"
        ),
    )


def _slowest(trace: Trace, precision: Precision, peaks: Peaks, allow_tf32: bool) -> tuple[float, Unit]:
    matrix = matrix_flops(trace)
    rest = sum(o.count * o.flops for o in trace.operators) - matrix
    parts = ((matrix, matrix_unit(peaks, precision, allow_tf32)), (rest, vector_unit(peaks, precision)))
    return max(parts, key=lambda p: p[0] / p[1].flops)


def quantity(value: float, unit: str) -> str:
    """`45.2 kB`, `1.10 TFLOP`: three digits and a decimal prefix."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def duration(seconds: float) -> str:
    """`4.52 µs`: three digits in the unit that fits."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
