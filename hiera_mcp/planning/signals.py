"""Evidence → signals: the named values that rubrics and knowledge signatures read. One function per signal."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from hiera_mcp.model.base import Model
from hiera_mcp.model.contract import Features
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
COUNTERS: Mapping[str, str] = MappingProxyType(
    {
        "dram_pct": "ncu_dram_pct",
        "l2_hit": "ncu_l2_hit",
        "bytes_per_sector": "ncu_bytes_per_sector_load",
        "waves": "ncu_waves",
        "issue": "ncu_issue_active",
        "active_threads": "ncu_threads_per_instruction",
        "long_scoreboard": "ncu_stall_long_scoreboard",
        "barrier_stall": "ncu_stall_barrier",
        "pipe_fma": "ncu_fma_pipe_pct",
        "pipe_tensor": "ncu_tensor_pipe_pct",
    }
)
"""Signal → metric of a profile."""
CONFLICTS = ("ncu_bank_conflicts_load", "ncu_bank_conflicts_store")
WAVEFRONTS = ("ncu_shared_wavefronts_load", "ncu_shared_wavefronts_store")

COVERS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "gemm": frozenset({"cublas", "cublasLt", "cutlass", "blas", "onednn", "eigen"}),
        "conv": frozenset({"cudnn", "cutlass", "onednn"}),
        "attention": frozenset({"cudnn", "cublas", "cublasLt", "cutlass", "blas", "onednn"}),
    }
)
"""Kind of contraction → libraries that have it, by the names that the host's search reports."""


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


def _dataflow(get: Callable[[Features], float]) -> Reader:
    """A signal from the dataflow of the reference, which old contracts know nothing of."""

    def reader(evidence: Evidence) -> Reading:
        if not evidence.features.depth:
            return Reading(value=None, reason="the contract states no dataflow; build it again")
        return Reading(value=round(get(evidence.features), 4))

    return reader


def _longest_reduction(features: Features) -> float:
    return max((r.extent for r in features.reductions), default=0)


def _fused_depth(features: Features) -> float:
    """Chains are taken to lie on the longest path; no chain shortens it by more than its own length."""
    merged = sum(chain.count * (chain.length - 1) for chain in features.chains)
    longest = max((chain.length for chain in features.chains), default=1)
    return max(features.depth - merged, -(-features.depth // longest))


def _libraries(evidence: Evidence) -> Reading:
    if evidence.libraries is None:
        return Reading(value=None, reason=evidence.libraries_reason or "unknown")
    return Reading(value=bool(evidence.libraries))


def _contraction_library(evidence: Evidence) -> Reading:
    shares = {kind: sum(op.share for op in evidence.features.operators if op.kind == kind) for kind in CONTRACTIONS}
    heaviest = max(shares, key=lambda kind: shares[kind])
    if shares[heaviest] == 0:
        return Reading(value=None, reason="the task has no contraction")
    if evidence.libraries is None:
        return Reading(value=None, reason=evidence.libraries_reason or "unknown")
    return Reading(value=not COVERS[heaviest].isdisjoint(evidence.libraries))


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


def _reference_floor_ratio(evidence: Evidence) -> Reading:
    best = best_of(evidence.outcomes)
    if best is None or best.timing is None or evidence.floor.seconds <= 0:
        return Reading(value=None, reason="eager PyTorch is timed beside the first candidate that passes")
    return Reading(value=best.timing.reference.median / evidence.floor.seconds)


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
        best: dict[str, Occupancy] = {}
        for row in evidence.profile.occupancy if evidence.profile is not None else ():
            if row.kernel not in best or row.percent > best[row.kernel].percent:
                best[row.kernel] = row
        if not best:
            return Reading(value=None, reason=evidence.profile_reason or "the profile states no occupancy")
        return Reading(value=get(min(best.values(), key=lambda row: row.percent)))

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
        total = sum(mix.values())
        if total == 0:
            return Reading(value=None, reason=_no_mix(evidence))
        return Reading(value=sum(mix.get(c, 0) for c in classes) / total)

    return reader


def _wide_load_share(evidence: Evidence) -> Reading:
    mix = _mix(evidence)
    loads = mix.get("load", 0) + mix.get("wide_load", 0)
    if loads == 0:
        return Reading(value=None, reason="the binary holds no load that was recognised" if mix else _no_mix(evidence))
    return Reading(value=mix.get("wide_load", 0) / loads)


def _mix_count(name: str) -> Reader:
    def reader(evidence: Evidence) -> Reading:
        mix = _mix(evidence)
        return Reading(value=mix.get(name, 0)) if mix else Reading(value=None, reason=_no_mix(evidence))

    return reader


def _no_mix(evidence: Evidence) -> str:
    return evidence.profile_reason or "no instruction mix is known for the best candidate"


def _counter(metric: str) -> Reader:
    return lambda evidence: _metric(evidence, metric)


def _metric(evidence: Evidence, name: str) -> Reading:
    profile = evidence.profile
    if profile is None:
        return Reading(value=None, reason=evidence.profile_reason)
    for metric in profile.metrics:
        if metric.name == name:
            return Reading(value=metric.value, reason=metric.reason)
    return Reading(value=None, reason=profile.counters or f"the profile has no {name}")


def _conflict_share(evidence: Evidence) -> Reading:
    readings = [_metric(evidence, name) for name in (*CONFLICTS, *WAVEFRONTS)]
    values = [float(r.value) for r in readings if isinstance(r.value, int | float)]
    if len(values) < len(readings):
        return next(r for r in readings if r.value is None)
    conflicts, wavefronts = sum(values[: len(CONFLICTS)]), sum(values[len(CONFLICTS) :])
    if wavefronts == 0:
        return Reading(value=None, reason="the candidate uses no shared memory")
    return Reading(value=conflicts / wavefronts)


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
        "fusable_share": _dataflow(lambda f: min(1.0, sum(chain.share for chain in f.chains))),
        "library_share": _dataflow(lambda f: 1.0 - f.uncovered_share),
        "depth": _dataflow(lambda f: f.depth),
        "fused_depth": _dataflow(_fused_depth),
        "longest_reduction": _dataflow(_longest_reduction),
        "tensor_core_legal": _value(lambda e: e.features.tensor_core_legal),
        "libraries_installed": _libraries,
        "contraction_library": _contraction_library,
        "speedup": _speedup,
        "floor_ratio": _floor_ratio,
        "reference_floor_ratio": _reference_floor_ratio,
        "registers": _resource(lambda k: k.registers, "register count"),
        "spill_bytes": _resource(_spills, "spills"),
        "shared_bytes": _resource(lambda k: k.shared_bytes, "shared memory"),
        "occupancy": _occupancy(lambda row: row.percent),
        "occupancy_limiter": _occupancy(lambda row: row.limiter),
        "bottleneck": _bottleneck,
        "tensor_instructions": _mix_count("tensor"),
        "async_copies": _mix_count("async_copy"),
        "wide_load_share": _wide_load_share,
        "memory_share": _mix_share("load", "wide_load", "store"),
        "branch_share": _mix_share("branch"),
        "barrier_share": _mix_share("barrier"),
        "atomic_share": _mix_share("atomic"),
        "special_share": _mix_share("special"),
        "conflict_share": _conflict_share,
        **{name: _counter(metric) for name, metric in COUNTERS.items()},
    }
)
"""One reader per name in SIGNALS."""
