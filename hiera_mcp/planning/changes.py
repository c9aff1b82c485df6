"""What moved from a parent to its child: profiles compared, noise left out. Pure."""

import math
from collections.abc import Mapping
from types import MappingProxyType

from hiera_mcp.model.knowledge import SignalValue
from hiera_mcp.model.profile import Change, Metric, ParentDiff, Prediction, Profile
from hiera_mcp.planning.predictions import judged, unknown
from hiera_mcp.planning.signals import COUNTERS

NOISE: Mapping[str, float] = MappingProxyType({"static": 0.0, "derived": 0.02, "counter": 0.05})
"""Origin → relative change that two profiles of the same code show as well. Counters are read in many passes."""
LEAST_POINTS = 2.0
"""A percentage that moves by less is noise, however small it was."""

LESS_IS_BETTER = frozenset(
    {
        *("time", "floor_ratio", "spill_bytes"),
        *("ncu_dram_read", "ncu_dram_write", "ncu_l2_reads", "ncu_l2_writes", "ncu_l2_atomics", "ncu_l2_reductions"),
        *("ncu_sectors_per_load", "ncu_sectors_per_store", "ncu_bank_conflicts_load", "ncu_bank_conflicts_store"),
        *("ncu_local_loads", "ncu_local_stores", "ncu_instructions", "ncu_branches", "ncu_sm_cycles"),
    }
)
MORE_IS_BETTER = frozenset(
    {
        *("achieved_bandwidth", "bandwidth_share", "achieved_flops", "flops_share"),
        *("ncu_bytes_per_sector_load", "ncu_bytes_per_sector_store", "ncu_threads_per_instruction"),
        *("ncu_threads_on_per_instruction", "ncu_uniform_branches_pct"),
    }
)
FIRST = ("time", "floor_ratio")
"""What a reader wants to see before all else."""


def compare(
    parent_id: str,
    parent: Profile,
    child: Profile,
    metric: str = "",
    expected: str = "",
    read: tuple[SignalValue, SignalValue] = (None, None),
) -> ParentDiff:
    """The metrics that moved beyond noise, greatest change first, and what became of a prediction.

    Args:
        metric: name of the metric that the strategy said would move; empty for none.
        expected: how, in the strategy's words.
        read: the signal of that name for parent and child, where it is none of the profiles' metrics.
    """
    before, after = _known(parent), _known(child)
    both = [name for name in before if name in after]
    moved = [name for name in both if _moved(before[name], after[name])]
    moved.sort(key=lambda name: (name not in FIRST, -_size(before[name], after[name])))
    return ParentDiff(
        parent_id=parent_id,
        bottleneck_before=parent.bottleneck,
        changes=tuple(_change(before[name], after[name]) for name in moved),
        unchanged=len(both) - len(moved),
        prediction=_prediction(metric, expected, before, after, read) if metric else None,
    )


def _known(profile: Profile) -> dict[str, Metric]:
    return {m.name: m for m in profile.metrics if m.value is not None}


def _moved(before: Metric, after: Metric) -> bool:
    old, new = before.value or 0.0, after.value or 0.0
    if before.unit == "%" and abs(new - old) < LEAST_POINTS:
        return False
    return abs(new - old) > NOISE[before.origin] * max(abs(old), abs(new))


def _size(before: Metric, after: Metric) -> float:
    """Relative to the larger of both, so that what appears or goes away counts as 1."""
    old, new = before.value or 0.0, after.value or 0.0
    return abs(new - old) / max(abs(old), abs(new))


def _change(before: Metric, after: Metric) -> Change:
    old, new = before.value or 0.0, after.value or 0.0
    better = new < old if before.name in LESS_IS_BETTER else new > old if before.name in MORE_IS_BETTER else None
    return Change(metric=before.name, before=old, after=new, unit=before.unit, better=better)


def _prediction(
    name: str,
    expected: str,
    before: Mapping[str, Metric],
    after: Mapping[str, Metric],
    read: tuple[SignalValue, SignalValue],
) -> Prediction:
    found = next((n for n in (name, f"ncu_{name}", COUNTERS.get(name, "")) if n in before and n in after), None)
    if found is not None:
        old, new = before[found], after[found]
        return judged(name, expected, old.value, new.value, _moved(old, new))
    one, other = read
    if not isinstance(one, int | float) or not isinstance(other, int | float):
        return unknown(name, expected, f"not both profiles know {name}")
    return judged(name, expected, float(one), float(other), _differ(one, other))


def _differ(old: float, new: float) -> bool:
    """Of what is counted in the binary, or follows from such counts."""
    return not math.isclose(old, new, rel_tol=NOISE["derived"])
