"""What the accounts and counters of a processor say of one call: metrics, and signs for the directions. Pure.

Thresholds without a source are ours. A direction of which nothing is known is left out: what the time alone says stands then.
"""

from collections.abc import Iterator

from hiera_mcp.model.contract import Contract
from hiera_mcp.model.profile import DirectionSigns, Metric, Profile
from hiera_mcp.model.work import HostCounts
from hiera_mcp.sandbox.child.host_counters import EVENTS
from hiera_mcp.sandbox.profiling.directions import AT_THE_FLOOR
from hiera_mcp.sandbox.profiling.signs import CF, MEM, PAR, REU, Sign

LINE, PAGE = 64, 4096
"""Bytes of a cache line and of a page; a larger page makes the estimate low."""


def with_host_counts(profile: Profile, contract: Contract, counts: HostCounts) -> Profile:
    """The profile of a candidate on `cpu` with what one call of it cost the processor."""
    near = profile.floor_ratio is not None and profile.floor_ratio < AT_THE_FLOOR
    return profile.model_copy(
        update={
            "metrics": (*profile.metrics, *metrics(counts)),
            "directions": () if near else directions(counts, contract),
            "summary": f"{profile.summary} {_in_words(counts)}",
            "counters": _told(counts),
            "counters_status": "unsupported" if counts.refused else "read",
            "counters_tool": "" if counts.refused else "perf_event_open",
        }
    )


def threads_used(counts: HostCounts) -> float:
    """Processors that were busy with the call, on average."""
    return (counts.user_seconds + counts.system_seconds) / counts.seconds if counts.seconds > 0 else 0.0


def metrics(counts: HostCounts) -> tuple[Metric, ...]:
    """Accounts, counters and what follows from them. A counter that was not read is null with the reason."""
    ratios = (
        ("instructions_per_cycle", _over(counts.instructions, counts.cycles), "per cycle"),
        ("branch_miss_share", _over(counts.branch_misses, counts.branches), "ratio"),
        ("llc_misses_per_1000", _over(counts.llc_read_misses, counts.instructions, 1000), "per 1000 instructions"),
        ("dtlb_misses_per_1000", _over(counts.dtlb_read_misses, counts.instructions, 1000), "per 1000 instructions"),
    )
    accounts = (
        ("threads_used", threads_used(counts), f"of {counts.processors}"),
        ("system_time_share", _over(counts.system_seconds, counts.user_seconds + counts.system_seconds), "ratio"),
        ("page_faults", counts.page_faults, "per call"),
        ("waits", counts.waits, "per call"),
    )
    events = tuple((name, getattr(counts, name), "per call") for name in EVENTS)
    return tuple(
        Metric(name=name, value=value, unit=unit, origin="counter", reason="" if value is not None else counts.refused)
        for name, value, unit in (*accounts, *ratios, *events)
    )


def directions(counts: HostCounts, contract: Contract) -> tuple[DirectionSigns, ...]:
    """Greatest score first."""
    judged = (_parallelism(counts), _control_flow(counts), _memory(counts), _reuse(counts, contract))
    return tuple(sorted((d for d in judged if d is not None), key=lambda d: -d.score))


def _parallelism(counts: HostCounts) -> DirectionSigns | None:
    if counts.processors < 2 or counts.seconds <= 0:
        return None
    used = threads_used(counts)
    share, text = used / counts.processors, f"{used:.1f} of {counts.processors} processors are busy"
    score = 4 if share < 0.3 else 3 if share < 0.55 else 2 if share < 0.8 else 0
    return _signs([Sign(PAR, score, text)])


def _control_flow(counts: HostCounts) -> DirectionSigns | None:
    share = _over(counts.branch_misses, counts.branches)
    if share is None:
        return None
    score = 3 if share >= 0.05 else 2 if share >= 0.02 else 0
    return _signs([Sign(CF, score, f"{share:.1%} of the branches are predicted wrongly")])


def _memory(counts: HostCounts) -> DirectionSigns | None:
    misses = _over(counts.dtlb_read_misses, counts.instructions, 1000)
    if misses is None:
        return None
    return _signs([Sign(MEM, 2 if misses >= 5 else 0, f"{misses:.1f} TLB misses per 1000 instructions")])


def _reuse(counts: HostCounts, contract: Contract) -> DirectionSigns | None:
    found = [*_fresh_memory(counts, contract), *_redundant(counts, contract)]
    return _signs(found) if found else None


def _fresh_memory(counts: HostCounts, contract: Contract) -> Iterator[Sign]:
    """Pages that are touched for the first time in the call: buffers that are allocated in each call."""
    fresh, compulsory = counts.page_faults * PAGE, contract.features.compulsory_bytes
    if compulsory and fresh >= 0.2 * compulsory:
        text = f"{counts.page_faults:.0f} page faults in a call: memory is allocated anew in each; take the workspace"
        yield Sign(REU, 3, text)


def _redundant(counts: HostCounts, contract: Contract) -> Iterator[Sign]:
    moved, compulsory = counts.llc_read_misses, contract.features.compulsory_bytes
    if moved is None or not compulsory:
        return
    ratio = moved * LINE / compulsory
    yield Sign(
        REU, 4 if ratio >= 1.6 else 3 if ratio >= 1.2 else 0, f"{ratio:.2f} times the task's bytes miss the cache"
    )


def _signs(found: list[Sign]) -> DirectionSigns:
    """Signs of one direction; one with score 0 speaks against it."""
    ordered = sorted(found, key=lambda s: -s.score)
    return DirectionSigns(
        direction=ordered[0].direction,
        score=ordered[0].score,
        signs_for=tuple(s.text for s in ordered if s.score),
        signs_against=tuple(s.text for s in ordered if not s.score),
    )


def _in_words(counts: HostCounts) -> str:
    cycle = _over(counts.instructions, counts.cycles)
    pace = "" if cycle is None else f", {cycle:.1f} instructions per cycle"
    return f"{threads_used(counts):.1f} of {counts.processors} processors busy{pace}."


def _told(counts: HostCounts) -> str:
    if counts.refused:
        return f"Processor time and page faults of one call, by the kernel's accounts. No hardware counters: {counts.refused}."
    return "Accounts and performance counters of one call, with warm caches, all threads, user code only."


def _over(part: float | None, whole: float | None, scale: float = 1.0) -> float | None:
    return scale * part / whole if part is not None and whole else None
