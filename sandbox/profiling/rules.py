"""NVIDIA's rules as hints: their messages made plain, and why some of them are not to be followed. Pure."""

import re
from collections.abc import Iterable

from hiera_mcp.model.profile import Hint, Launch
from hiera_mcp.sandbox.profiling.facts import HIGH, Facts, TaskFacts
from hiera_mcp.sandbox.profiling.raw import RawRule

MOST_CHARACTERS = 400
_OCCUPANCY = frozenset({"TheoreticalOccupancy", "AchievedOccupancy", "Occupancy"})
_ISSUE = frozenset({"IssueSlotUtilization", "CPIStall"})
_COALESCING = frozenset({"MemoryCacheAccessPattern", "UncoalescedGlobalAccess"})


def hints(found: Iterable[RawRule]) -> tuple[Hint, ...]:
    """The findings that advise something, greatest estimate first."""
    advice = [_hint(rule) for rule in found if rule.kind in ("optimization", "warning")]
    return tuple(sorted(advice, key=lambda hint: -(hint.gain_percent or 0.0)))


def overrule(launch: Launch, task: TaskFacts, stop: str) -> Launch:
    """The launch with the reasons not to follow some of its hints.

    Args:
        stop: why nothing is left to tune; empty when something is.
    """
    facts = Facts(launch, task)
    told = (hint.model_copy(update={"overruled": why_not(hint.rule, facts, stop)}) for hint in launch.hints)
    return launch.model_copy(update={"hints": tuple(told)})


def why_not(rule: str, f: Facts, stop: str) -> str:
    """Why a rule is not to be followed here; empty when nothing speaks against it."""
    if rule == "MemoryL2Compression":
        return "compression needs memory that was allocated as compressible, and tensors are not"
    if rule == "PMSamplingData":
        return "it speaks of the sampler, not of the kernel"
    if stop:
        return stop
    if rule in _OCCUPANCY | _ISSUE and _persistent(f):
        return "a persistent kernel on wgmma or TMA needs few warps"
    if rule in _COALESCING and f.above("tma_loads", 1):
        return "TMA brings the data; this sees only the accesses beside it"
    if rule in _OCCUPANCY and not f.starved:
        return "a unit is busy, or the schedulers have enough to issue"
    if rule == "HighPipeUtilization" and f.above("memory_pct", HIGH):
        return "memory bounds it, so arithmetic pipes idle"
    return ""


def plain(message: str) -> str:
    """A message without its links: `@url:text:address@` in a report, `text (address)` in what ncu prints; and without
    `@section:name:text@` and the like."""
    text = re.sub(r"@url:([^@]*?):https?:[^@]*@", r"\1", message)
    text = re.sub(r" \(https?:[^)]*\)", "", text)
    text = re.sub(r"@section:[^:@]*:([^@]*)@", r"\1", text)
    text = re.sub(r"@(?:sass|source):[^@]*:([^:@]*)@", r"\1", text)
    return " ".join(text.split())


def _persistent(f: Facts) -> bool:
    return f.needs_few_warps and f.below("waves", 1.01)


def _hint(rule: RawRule) -> Hint:
    text = plain(rule.message)
    return Hint(
        rule=rule.rule,
        message=text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…",
        gain_percent=None if rule.gain_percent is None else round(rule.gain_percent, 1),
        scope=rule.scope,
    )
