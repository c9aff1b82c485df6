"""A profile as an agent reads it: the answer first, the values behind it, and addresses for the rest."""

from collections.abc import Iterable, Iterator

from hiera_mcp.model.base import Model
from hiera_mcp.model.evaluation import KernelResources
from hiera_mcp.model.profile import (
    Bottleneck,
    Change,
    CounterStatus,
    Hint,
    Launch,
    ParentDiff,
    Profile,
    SourceLine,
)
from hiera_mcp.model.space import Direction
from hiera_mcp.planning.predictions import told

MOST_LAUNCHES, MOST_LINES, MOST_HINTS, MOST_CHANGES, MOST_KERNELS = 3, 5, 3, 8, 4
MOST_STALLS, MOST_SIGNS = 3, 2
LEAST_SHARE = 0.01
"""Of the samples, for a line to be shown."""
HINT_CHARACTERS, NAME_CHARACTERS, LINE_CHARACTERS = 170, 60, 72

SHOWN = (
    *("sm_pct", "memory_pct", "dram_pct", "l2_pct", "l1_data_pct", "occupancy_pct", "issue_active", "waves"),
    *("bytes_per_sector_load", "threads_per_instruction", "fma_pipe_pct", "tensor_pipe_pct", "registers"),
)
"""Counters of a launch that are shown; the others are in the profile itself."""


class LaunchView(Model):
    """One launch of a kernel."""

    kernel: str
    share: float
    seconds: float | None
    values: dict[str, float | None]
    """Counters; null: this GPU gave none."""
    stalls: dict[str, float]
    """Reason → share."""


class DirectionView(Model):
    """What the profile says for and against a direction."""

    direction: Direction
    score: int
    """0 to 4."""
    signs_for: tuple[str, ...]
    signs_against: tuple[str, ...]


class ProfileView(Model):
    """What bounds a candidate, and what to do about it."""

    bottleneck: Bottleneck
    summary: str
    floor_ratio: float | None
    """Measured time / floor."""
    directions: tuple[DirectionView, ...]
    """Best first; empty without counters."""
    launches: tuple[LaunchView, ...]
    lines: tuple[str, ...]
    """Those with the most samples, and what they wait for."""
    hints: tuple[str, ...]
    """Rules of Nsight Compute; never add their gains."""
    changes: tuple[str, ...]
    """Against the parent, beyond noise."""
    metrics: dict[str, float | None]
    """Static and derived."""
    missing: dict[str, str]
    """Null metric → why."""
    kernels: tuple[str, ...]
    instruction_mix: dict[str, int]
    counters: str
    counters_status: CounterStatus
    device: str
    uris: dict[str, str]
    """profile (all of it), listing (machine code by source line), roofline, stalls (SVG), report (for ncu's GUI)."""


def profile_view(profile: Profile, candidate_id: str) -> ProfileView:
    """The view of a candidate's profile."""
    longest = sorted(profile.launches, key=lambda launch: -launch.share)
    own = [m for m in profile.metrics if m.origin != "counter"]
    return ProfileView(
        bottleneck=profile.bottleneck,
        summary=profile.summary,
        floor_ratio=rounded(profile.floor_ratio),
        directions=tuple(_directions(profile)),
        launches=tuple(_launch(launch) for launch in longest[:MOST_LAUNCHES] if launch.metrics),
        lines=tuple(_line(line) for line in longest[0].lines[:MOST_LINES] if line.share >= LEAST_SHARE)
        if longest
        else (),
        hints=tuple(_hint(hint) for hint in _best_hints(longest)),
        changes=tuple(_changes(profile.diff)) if profile.diff else (),
        metrics={m.name: rounded(m.value) for m in own if m.value is not None},
        missing={m.name: m.reason for m in own if m.value is None},
        kernels=tuple(_kernel(kernel) for kernel in profile.kernels[:MOST_KERNELS]),
        instruction_mix={name: count for name, count in profile.instruction_mix.items() if count},
        counters=profile.counters,
        counters_status=profile.counters_status,
        device=profile.device.name if profile.device else "",
        uris=dict(_uris(profile, candidate_id)),
    )


def rounded(value: float | None) -> float | None:
    """Four digits are what a measurement has."""
    return None if value is None else float(f"{value:.4g}")


def _directions(profile: Profile) -> Iterator[DirectionView]:
    for found in profile.directions:
        yield DirectionView(
            direction=found.direction,
            score=found.score,
            signs_for=found.signs_for[:MOST_SIGNS],
            signs_against=found.signs_against[:1],
        )


def _launch(launch: Launch) -> LaunchView:
    return LaunchView(
        kernel=launch.kernel[:NAME_CHARACTERS],
        share=launch.share,
        seconds=rounded(launch.seconds),
        values={name: rounded(launch.value(name)) for name in SHOWN},
        stalls={stall.reason: stall.share for stall in launch.stalls[:MOST_STALLS]},
    )


def _line(line: SourceLine) -> str:
    waits = f", {line.stall} {line.stall_share:.0%}" if line.stall else ""
    excess = f", {line.sectors_over_ideal:g}× the sectors" if (line.sectors_over_ideal or 0) > 1.1 else ""
    where = f"{line.where} {line.share:.0%} of the samples{waits}{excess}"
    told = (line.instruction[:LINE_CHARACTERS], line.text[:LINE_CHARACTERS])
    return f"{where}: {' | '.join(filter(None, told))}"


def _best_hints(launches: list[Launch]) -> list[Hint]:
    """Those of the longest launch, the ones to follow first."""
    hints = launches[0].hints if launches else ()
    return sorted(hints, key=lambda hint: bool(hint.overruled))[:MOST_HINTS]


def _hint(hint: Hint) -> str:
    gain = "" if hint.gain_percent is None else f" ({hint.gain_percent:g} % of the {hint.scope})"
    if hint.overruled:
        return f"{hint.rule}{gain}: do not follow it: {hint.overruled}"
    return f"{hint.rule}{gain}: {_cut(hint.message)}"


def _cut(message: str) -> str:
    return message if len(message) <= HINT_CHARACTERS else message[:HINT_CHARACTERS].rpartition(" ")[0] + " …"


def _changes(diff: ParentDiff) -> Iterator[str]:
    if (said := diff.prediction) is not None:
        yield f"predicted: {told(said)}"
    yield from (_change(change) for change in diff.changes[:MOST_CHANGES])
    if len(diff.changes) > MOST_CHANGES:
        yield f"and {len(diff.changes) - MOST_CHANGES} more; {diff.unchanged} did not move"


def _change(change: Change) -> str:
    verdict = "" if change.better is None else " (better)" if change.better else " (worse)"
    return f"{change.metric} {rounded(change.before)} → {rounded(change.after)} {change.unit}".rstrip() + verdict


def _kernel(kernel: KernelResources) -> str:
    spilled = sum(b or 0 for b in (kernel.spill_store_bytes, kernel.spill_load_bytes))
    parts = (f"{kernel.registers} registers", f"{spilled} B spills", f"{kernel.shared_bytes or 0} B shared")
    return f"{kernel.kernel[:NAME_CHARACTERS]}: {', '.join(parts)}"


def _uris(profile: Profile, candidate_id: str) -> Iterable[tuple[str, str]]:
    base = f"hiera://candidates/{candidate_id}/profile"
    yield "profile", base
    if profile.roofline is not None:
        yield "roofline", f"{base}/roofline.svg"
    if profile.launches:
        yield "listing", f"{base}/listing"
    if any(launch.stalls for launch in profile.launches):
        yield "stalls", f"{base}/stalls.svg"
        yield "report", f"{base}/report"
