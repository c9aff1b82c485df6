"""What a candidate's binary and its measured time say about its bottleneck, without hardware counters.

Static evidence comes from the compiler and the disassembly, derived evidence from the evaluation's time and the
contract's floor. The rule for the bottleneck is the roofline's, with the 60 % threshold of NVIDIA's Compute Triage
Guide: at 60 % of a peak or more that resource bounds the candidate; far from both it waits, on latency, on a lack of
parallelism, or, when a call is about as short as its launches, on those.
"""

from collections.abc import Iterator

from hiera_mcp.model.base import digest
from hiera_mcp.model.contract import Contract
from hiera_mcp.model.evaluation import Device, KernelResources, Timing
from hiera_mcp.model.profile import Bottleneck, Metric, Occupancy, Profile
from hiera_mcp.model.space import is_cpu
from hiera_mcp.model.work import ProfileRequest
from hiera_mcp.sandbox.compilers.build import Built
from hiera_mcp.sandbox.compilers.inspect import NO_CUOBJDUMP, NO_OBJDUMP
from hiera_mcp.sandbox.occupancy import limits_of, occupancy

BLOCKS = (128, 256, 512, 1024)
"""Block sizes for which occupancy is told; the binary does not say which one a launch uses."""
NEAR_PEAK = 0.6
LAUNCH_SECONDS = 5e-6
"""About what one launch, or one parallel region, costs end to end; a call below it is bound by that."""
NOT_TIMED = "the candidate was not timed; evaluate it first"
_PER_BYTE, _PER_FLOP = "B/s", "FLOP/s"


def profile(request: ProfileRequest, built: Built, device: Device) -> Profile:
    """The static and derived profile of a built candidate. Metrics that cannot be had are null and say why."""
    contract, timing = request.contract, request.timing
    kernels = built.build.kernels
    bottleneck = classify(contract, timing)
    ratio = floor_ratio(contract, timing)
    return Profile(
        bottleneck=bottleneck,
        summary=" ".join(_summary(contract, timing, bottleneck, built)),
        metrics=(*derived(contract, timing), *static(contract, built)),
        kernels=kernels,
        occupancy=occupancies(contract, kernels),
        instruction_mix=built.instruction_mix,
        floor_ratio=ratio,
        device=device,
        counters=_counters(contract),
        counters_status="cpu" if is_cpu(contract.target) else "not_asked",
        sources_digest=digest(request.sources),
    )


def floor_ratio(contract: Contract, timing: Timing | None) -> float | None:
    """Measured time / floor."""
    if timing is None or contract.floor.seconds <= 0:
        return None
    return timing.candidate.median / contract.floor.seconds


def classify(contract: Contract, timing: Timing | None) -> Bottleneck:
    """What bounds the candidate, as far as its time alone tells."""
    if timing is None or timing.candidate.median <= 0:
        return "unknown"
    seconds, floor = timing.candidate.median, contract.floor
    memory, math = floor.memory_seconds / seconds, floor.math_seconds / seconds
    if max(memory, math) >= NEAR_PEAK:
        return "memory" if memory >= math else "compute"
    return "launch" if seconds < LAUNCH_SECONDS else "latency"


def derived(contract: Contract, timing: Timing | None) -> tuple[Metric, ...]:
    """Rates that follow from the time and from what the task must move and compute."""
    features, floor = contract.features, contract.floor
    seconds = timing.candidate.median if timing is not None and timing.candidate.median > 0 else None
    values: tuple[tuple[str, float | None, str], ...] = (
        ("time", seconds, "s"),
        ("floor_ratio", floor_ratio(contract, timing), "ratio"),
        ("achieved_bandwidth", _over(features.compulsory_bytes, seconds), _PER_BYTE),
        ("bandwidth_share", _over(floor.memory_seconds, seconds), "ratio"),
        ("achieved_flops", _over(features.flops, seconds), _PER_FLOP),
        ("flops_share", _over(floor.math_seconds, seconds), "ratio"),
    )
    return tuple(
        Metric(name=name, value=value, unit=unit, origin="derived", reason="" if value is not None else NOT_TIMED)
        for name, value, unit in values
    )


def static(contract: Contract, built: Built) -> tuple[Metric, ...]:
    """What the binary says."""
    kernels, mix = built.build.kernels, built.instruction_mix
    no_kernels = (
        "only ptxas reports registers and spills; the target is cpu"
        if is_cpu(contract.target)
        else "ptxas reported no kernel: the compiled files hold none"
    )
    values: tuple[tuple[str, float | None, str, str], ...] = (
        ("registers_max", _most(k.registers for k in kernels), "per thread", no_kernels),
        ("spill_bytes", _most(_spilled(k) for k in kernels), "B per thread", no_kernels),
        ("static_shared_bytes", _most(k.shared_bytes for k in kernels), "B per block", no_kernels),
        ("wide_load_share", _share(mix, ("wide_load",), ("load", "wide_load")), "ratio", _no_mix(contract, built)),
        ("tensor_share", _share(mix, ("tensor",), ("tensor", "fma")), "ratio", _no_mix(contract, built)),
        ("branch_share", _share(mix, ("branch",), tuple(mix)), "ratio", _no_mix(contract, built)),
    )
    return tuple(
        Metric(name=name, value=value, unit=unit, origin="static", reason="" if value is not None else reason)
        for name, value, unit, reason in values
    )


def occupancies(contract: Contract, kernels: tuple[KernelResources, ...]) -> tuple[Occupancy, ...]:
    """Theoretical occupancy of each kernel at the usual block sizes, without dynamic shared memory."""
    sm = None if is_cpu(contract.target) else limits_of(contract.target)
    if sm is None:
        return ()
    found = (occupancy(kernel, threads, sm) for kernel in kernels for threads in BLOCKS)
    return tuple(o for o in found if o is not None)


def notes(contract: Contract, built: Built) -> tuple[str, ...]:
    """What the binary alone says about speed: theoretical occupancy of each kernel, and the advice that follows."""
    return (*_occupancy_notes(contract, built.build.kernels), *_static_advice(contract, built))


def _occupancy_notes(contract: Contract, kernels: tuple[KernelResources, ...]) -> Iterator[str]:
    found = occupancies(contract, kernels)
    for kernel in dict.fromkeys(o.kernel for o in found):
        parts = [f"{o.percent:g} % at {o.block_threads}{_because(o)}" for o in found if o.kernel == kernel]
        yield f"{kernel}: occupancy by threads per block, without dynamic shared memory: {', '.join(parts)}."


def _because(found: Occupancy) -> str:
    return "" if found.limiter == "none" else f" ({found.limiter.replace('_', ' ')})"


def _summary(contract: Contract, timing: Timing | None, bottleneck: Bottleneck, built: Built) -> Iterator[str]:
    ratio = floor_ratio(contract, timing)
    if timing is None or ratio is None:
        yield "Not timed: only the binary is described."
    else:
        yield _distance(contract, timing, ratio)
        yield _ADVICE[bottleneck]
    yield from _static_advice(contract, built)


def _distance(contract: Contract, timing: Timing, ratio: float) -> str:
    floor, seconds = contract.floor, timing.candidate.median
    memory, math = 100 * floor.memory_seconds / seconds, 100 * floor.math_seconds / seconds
    return (
        f"{_time(seconds)} per call, {ratio:.2f} times the floor of {_time(floor.seconds)} ({floor.bound}): "
        f"{memory:.0f} % of the bandwidth and {math:.0f} % of the arithmetic peak that the floor assumes."
    )


_ADVICE: dict[Bottleneck, str] = {
    "memory": "Bound by memory: only fewer bytes help (fusion, narrower types, reuse), or the last per cent of bandwidth.",
    "compute": "Bound by arithmetic: use faster units or fewer operations; memory tuning will not show.",
    "latency": "Near neither peak: it waits. More parallelism, more bytes in flight, overlap of loads and arithmetic.",
    "launch": "A call is about as short as its launches: merge kernels or parallel regions.",
    "unknown": "What bounds it is not known.",
}


def _static_advice(contract: Contract, built: Built) -> Iterator[str]:
    spilling = max(built.build.kernels, key=lambda k: _spilled(k) or 0, default=None)
    if spilling is not None and (spilled := _spilled(spilling)):
        yield f"{spilling.kernel} spills {spilled} bytes per thread with {spilling.registers} registers: lower its tile."
    mix = built.instruction_mix
    loads = mix.get("load", 0) + mix.get("wide_load", 0)
    if loads and not mix.get("wide_load"):
        yield "No load is wide: vectorise where the data are aligned."
    if contract.features.tensor_core_legal and not is_cpu(contract.target) and mix and not mix.get("tensor"):
        yield "Tensor Cores are legal here and unused."


def _counters(contract: Contract) -> str:
    if is_cpu(contract.target):
        return "Hardware counters are not read on cpu; the evidence is static and derived from the time."
    return "Hardware counters were not read; the evidence is static and derived from the time."


def _no_mix(contract: Contract, built: Built) -> str:
    if built.instruction_mix:
        return "the binary holds no instruction of these classes"
    if not built.compiler:
        return "nothing was compiled: ModelNew is loaded as it is"
    return NO_OBJDUMP if is_cpu(contract.target) else NO_CUOBJDUMP


def _spilled(kernel: KernelResources) -> int | None:
    if kernel.spill_store_bytes is None and kernel.spill_load_bytes is None:
        return None
    return (kernel.spill_store_bytes or 0) + (kernel.spill_load_bytes or 0)


def _most(values: Iterator[int | None]) -> float | None:
    known = [v for v in values if v is not None]
    return float(max(known)) if known else None


def _share(mix: dict[str, int], part: tuple[str, ...], whole: tuple[str, ...]) -> float | None:
    total = sum(mix.get(name, 0) for name in whole)
    return sum(mix.get(name, 0) for name in part) / total if total else None


def _over(amount: float, seconds: float | None) -> float | None:
    return None if seconds is None else amount / seconds


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
