"""What a strategy says will move, and whether it did. Pure."""

import math
import re
from collections.abc import Mapping
from types import MappingProxyType

from hiera_mcp.model.base import Model
from hiera_mcp.model.evaluation import Comparison
from hiera_mcp.model.profile import Prediction, PredictionVerdict

FALLS = (
    *("time", "floor_ratio", "registers", "spill_bytes", "launches", "memory_share", "branch_share", "barrier_share"),
    *("atomic_share", "special_share", "conflict_share", "long_scoreboard", "barrier_stall"),
)
RISES = (
    *("speedup", "occupancy", "tensor_instructions", "async_copies", "wide_load_share", "dram_pct", "l2_hit", "waves"),
    *("bytes_per_sector", "issue", "active_threads", "pipe_fma", "pipe_tensor"),
)
GOOD: Mapping[str, str] = MappingProxyType(dict.fromkeys(FALLS, "falls") | dict.fromkeys(RISES, "rises"))
"""Name of what can be predicted → which way is good, unless a strategy says otherwise."""
BY_TIME = ("time", "speedup", "floor_ratio")
"""Told by the evaluations alone."""
ENOUGH = 0.9
"""Part of the predicted change that counts as all of it."""
FORMS = "`-30 %`, `+20 points`, `×2`, `falls by 30 %`, `falls to 0.1`, `rises above 60`, `falls`"

_FALL = "falls?|drops?|sinks?|shrinks?|lower|less|fewer|decreases?"
_RISE = "rises?|grows?|higher|more|increases?"
_TEXT = re.compile(
    rf"\s*(?:(?P<fall>{_FALL})\b|(?P<rise>{_RISE})\b)?[ ]*(?P<link>by|to|below|under|above|over|<|>)?[ ]*"
    r"(?P<sign>[+\-−–])?[ ]*(?P<times>[x×])?[ ]*(?P<number>\d+(?:\.\d+)?)?[ ]*(?P<unit>%|per ?cent|points?\b|[x×])?",
    re.IGNORECASE,
)


class Expectation(Model):
    """A change in numbers. At most one of `factor`, `points` and `bound` is given; without any, only the way counts."""

    rises: bool
    factor: float | None = None
    """After / before."""
    points: float | None = None
    """After - before, without sign."""
    bound: float | None = None
    """What is reached or passed."""


def expectation(text: str, metric: str = "") -> Expectation | None:
    """The change that a text begins with; an empty text means the good way of the metric. None: it names none."""
    if not text.strip():
        return Expectation(rises=GOOD[metric] == "rises") if metric in GOOD else None
    found = _TEXT.match(text)
    assert found is not None  # everything in the pattern may be absent
    word = "falls" if found["fall"] else "rises" if found["rise"] else ""
    return _with_number(found, word) if found["number"] else _way(word)


def judged(metric: str, expected: str, before: float | None, after: float | None, moved: bool | None) -> Prediction:
    """The prediction with its verdict.

    Args:
        moved: whether it changed beyond noise; None when that is not known.
    """
    change = expectation(expected, metric)
    verdict: PredictionVerdict = "unknown"
    reason = "" if change else f"the strategy names no change of {metric}"
    if change and moved is not None and before is not None and after is not None:
        verdict = _verdict(change, before, after) if moved else "refuted"
    return Prediction(
        metric=metric, expected=expected, before=before, after=after, moved=moved, verdict=verdict, reason=reason
    )


def by_time(metric: str, expected: str, comparison: Comparison, parent: float) -> Prediction:
    """A prediction about time, judged by the comparison of two evaluations, which knows its own noise.

    Args:
        parent: the parent's value of the metric; the child's follows from the ratio.
    """
    factor = comparison.ratio.median if metric == "speedup" else 1 / comparison.ratio.median
    return judged(metric, expected, parent, parent * factor, comparison.verdict != "no_difference")


def unknown(metric: str, expected: str, reason: str) -> Prediction:
    return Prediction(metric=metric, expected=expected, before=None, after=None, moved=None, reason=reason)


def told(prediction: Prediction) -> str:
    """The prediction in a line."""
    said = f"{prediction.metric} {prediction.expected.partition(':')[0]}".strip()
    if prediction.before is None or prediction.after is None:
        return f"{said}: {prediction.verdict}, {prediction.reason}" if prediction.reason else f"{said}: unknown"
    words = {"held": "held", "partly": "moved so, but by less", "refuted": "refuted", "unknown": "unknown"}
    still = ", it did not move" if prediction.moved is False else ""
    unit = " s" if prediction.metric == "time" else ""
    return f"{said}: {words[prediction.verdict]}{still} ({prediction.before:.4g} → {prediction.after:.4g}{unit})"


def _way(word: str) -> Expectation | None:
    return Expectation(rises=word == "rises") if word else None


def _with_number(found: re.Match[str], word: str) -> Expectation | None:
    number, unit, link = float(found["number"]), (found["unit"] or "").lower(), (found["link"] or "").lower()
    word = word or {"+": "rises"}.get(found["sign"] or "", "falls" if found["sign"] else "")
    if found["times"] or unit in ("x", "×"):
        return _times(number, word)
    if link in ("below", "under", "<", "above", "over", ">"):
        return Expectation(rises=link in ("above", "over", ">"), bound=number)
    if link == "to":
        return Expectation(rises=word == "rises", bound=number) if word else None
    if not word:
        return None
    rises = word == "rises"
    if unit.startswith(("%", "per")):
        return Expectation(rises=rises, factor=max(0.0, 1 + number / 100 if rises else 1 - number / 100))
    return Expectation(rises=rises, points=number)


def _times(number: float, word: str) -> Expectation | None:
    """`×2` rises, `×0.5` falls, `falls by 2×` halves."""
    if number <= 0:
        return None
    factor = 1 / number if word == "falls" and number > 1 else number
    return Expectation(rises=factor > 1, factor=factor)


def _verdict(change: Expectation, before: float, after: float) -> PredictionVerdict:
    if (after > before) is not change.rises:
        return "refuted"
    return "held" if _far_enough(change, before, after) else "partly"


def _far_enough(change: Expectation, before: float, after: float) -> bool:
    if change.bound is not None:
        return after >= change.bound if change.rises else after <= change.bound
    if change.points is not None:
        return abs(after - before) >= ENOUGH * change.points
    if change.factor is None or before == 0:
        return True
    if change.factor == 0 or after <= 0:
        return after <= 0
    return abs(math.log(after / before)) >= ENOUGH * abs(math.log(change.factor))
