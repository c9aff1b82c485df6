"""Evidence → signals: the named values that rubrics and knowledge signatures read. One function per signal."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from hiera_mcp.model.base import Model
from hiera_mcp.model.evaluation import KernelResources
from hiera_mcp.model.knowledge import SignalValue
from hiera_mcp.model.profile import Occupancy
from hiera_mcp.model.space import is_cpu
from hiera_mcp.planning.evidence import Evidence
from hiera_mcp.planning.parents import best_of


class Reading(Model):
    """A value, or why there is none."""

    value: float | str | bool | None
    reason: str = ""


Reader = Callable[[Evidence], Reading]

CONTRACTIONS = ("gemm", "conv", "attention")
STREAMING = ("reduction", "normalisation", "elementwise", "movement", "scan")
COUNTERS = (
    "dram_pct",
    "l2_hit",
    "sectors_per_request",
    "bytes_per_sector",
    "conflict_share",
    "waves",
    "issue",
    "active_threads",
    "long_scoreboard",
    "barrier_stall",
    "pipe_fma",
    "pipe_tensor",
)


def read(evidence: Evidence, name: str) -> Reading:
    """One signal. `name` must be in SIGNALS."""
    return READERS[name](evidence)


def signals(evidence: Evidence) -> Mapping[str, SignalValue]:
    """All signals; null where the evidence is missing."""
    return MappingProxyType({name: reader(evidence).value for name, reader in READERS.items()})


def _value(get: Callable[[Evidence], float | str | bool]) -> Reader:
    return lambda evidence: Reading(value=get(evidence))


def _share(*kinds: str) -> Reader:
    def reader(evidence: Evidence) -> Reading:
        share = sum(op.share for op in evidence.features.operators if op.kind in kinds)
        return Reading(value=round(min(share, 1.0), 4))

    return reader


def _fusion_ratio(evidence: Evidence) -> Reading:
    f = evidence.features
    if f.compulsory_bytes <= 0:
        return Reading(value=None, reason="the contract states no compulsory bytes")
    return Reading(value=f.unfused_bytes / f.compulsory_bytes)


def _intensity_over_ridge(evidence: Evidence) -> Reading:
    floor = evidence.floor
    if floor.peak_flops <= 0 or floor.bandwidth <= 0:
        return Reading(value=None, reason="the floor names no peaks")
    return Reading(value=evidence.features.arithmetic_intensity * floor.bandwidth / floor.peak_flops)


def _footprint_over_cache(evidence: Evidence) -> Reading:
    if evidence.gpu is None:
        return Reading(value=None, reason="no GPU: the size of its L2 cache is unknown")
    return Reading(value=evidence.features.compulsory_bytes / evidence.gpu.l2_bytes)


def _libraries(evidence: Evidence) -> Reading:
    if evidence.libraries is None:
        return Reading(value=None, reason=evidence.libraries_reason or "unknown")
    return Reading(value=bool(evidence.libraries))


def _speedup(evidence: Evidence) -> Reading:
    best = best_of(evidence.outcomes)
    if best is None or best.speedup is None:
        return Reading(value=None, reason="no candidate has been timed")
    return Reading(value=best.speedup.median)


def _floor_ratio(evidence: Evidence) -> Reading:
    best = best_of(evidence.outcomes)
    if best is None or best.floor_ratio is None:
        return Reading(value=None, reason="no candidate has been timed")
    return Reading(value=best.floor_ratio)


def _kernels(evidence: Evidence) -> tuple[KernelResources, ...]:
    if evidence.profile is not None and evidence.profile.kernels:
        return evidence.profile.kernels
    best = best_of(evidence.outcomes)
    return best.kernels if best is not None else ()


def _resource(get: Callable[[KernelResources], int | None], what: str) -> Reader:
    def reader(evidence: Evidence) -> Reading:
        values = [v for v in map(get, _kernels(evidence)) if v is not None]
        if values:
            return Reading(value=max(values))
        why = (
            "no candidate has passed yet"
            if best_of(evidence.outcomes) is None
            else f"the build of the best candidate tells no {what}"
        )
        return Reading(value=None, reason=why)

    return reader


def _spills(kernel: KernelResources) -> int | None:
    if kernel.spill_store_bytes is None and kernel.spill_load_bytes is None:
        return None
    return (kernel.spill_store_bytes or 0) + (kernel.spill_load_bytes or 0)


def _occupancy(get: Callable[[Occupancy], float | str]) -> Reader:
    def reader(evidence: Evidence) -> Reading:
        rows = evidence.profile.occupancy if evidence.profile is not None else ()
        if not rows:
            return Reading(value=None, reason=evidence.profile_reason or "the profile states no occupancy")
        return Reading(value=get(min(rows, key=lambda row: row.percent)))

    return reader


def _bottleneck(evidence: Evidence) -> Reading:
    if evidence.profile is None:
        return Reading(value=None, reason=evidence.profile_reason)
    return Reading(value=evidence.profile.bottleneck)


def _mix(evidence: Evidence) -> Mapping[str, int]:
    if evidence.profile is not None and evidence.profile.instruction_mix:
        return evidence.profile.instruction_mix
    best = best_of(evidence.outcomes)
    return (best.instruction_mix or {}) if best is not None else {}


def _mix_share(*classes: str) -> Reader:
    def reader(evidence: Evidence) -> Reading:
        mix = _mix(evidence)
        total = sum(n for name, n in mix.items() if name != "wide_load")  # wide loads are counted among the loads
        if total == 0:
            return Reading(value=None, reason=_no_mix(evidence))
        return Reading(value=sum(mix.get(c, 0) for c in classes) / total)

    return reader


def _wide_load_share(evidence: Evidence) -> Reading:
    mix = _mix(evidence)
    loads = mix.get("load", 0)
    if loads == 0:
        return Reading(
            value=None, reason=_no_mix(evidence) if not mix else "the binary holds no load that was classified"
        )
    return Reading(value=min(mix.get("wide_load", 0) / loads, 1.0))


def _tensor_instructions(evidence: Evidence) -> Reading:
    mix = _mix(evidence)
    return Reading(value=mix.get("tensor", 0)) if mix else Reading(value=None, reason=_no_mix(evidence))


def _no_mix(evidence: Evidence) -> str:
    return evidence.profile_reason or "no instruction mix is known for the best candidate"


def _counter(name: str) -> Reader:
    def reader(evidence: Evidence) -> Reading:
        profile = evidence.profile
        if profile is None:
            return Reading(value=None, reason=evidence.profile_reason)
        for metric in profile.metrics:
            if metric.name == name:
                return Reading(value=metric.value, reason=metric.reason)
        return Reading(value=None, reason=profile.counters or f"the profile has no {name}")

    return reader


READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "platform": _value(lambda e: "cpu" if is_cpu(e.target) else "cuda"),
        "precision": _value(lambda e: e.precision),
        **{f"{kind}_share": _share(kind) for kind in (*CONTRACTIONS, *STREAMING, "other")},
        "contraction_share": _share(*CONTRACTIONS),
        "streaming_share": _share(*STREAMING),
        "operators": _value(lambda e: sum(op.count for op in e.features.operators)),
        "launches": _value(lambda e: e.features.launches),
        "parameters": _value(lambda e: e.parameters),
        "arithmetic_intensity": _value(lambda e: e.features.arithmetic_intensity),
        "intensity_over_ridge": _intensity_over_ridge,
        "floor_bound": _value(lambda e: e.floor.bound),
        "floor_seconds": _value(lambda e: e.floor.seconds),
        "compulsory_bytes": _value(lambda e: e.features.compulsory_bytes),
        "fusion_ratio": _fusion_ratio,
        "footprint_over_cache": _footprint_over_cache,
        "tensor_core_legal": _value(lambda e: e.features.tensor_core_legal),
        "libraries_installed": _libraries,
        "speedup": _speedup,
        "floor_ratio": _floor_ratio,
        "registers": _resource(lambda k: k.registers, "register count"),
        "spill_bytes": _resource(_spills, "spills"),
        "shared_bytes": _resource(lambda k: k.shared_bytes, "shared memory"),
        "block_threads": _occupancy(lambda row: row.block_threads),
        "occupancy": _occupancy(lambda row: row.percent),
        "occupancy_limiter": _occupancy(lambda row: row.limiter),
        "bottleneck": _bottleneck,
        "tensor_instructions": _tensor_instructions,
        "wide_load_share": _wide_load_share,
        "memory_share": _mix_share("load", "store"),
        "branch_share": _mix_share("branch"),
        "barrier_share": _mix_share("barrier"),
        "atomic_share": _mix_share("atomic"),
        "special_share": _mix_share("special"),
        **{name: _counter(name) for name in COUNTERS},
    }
)
"""One reader per name in SIGNALS."""
