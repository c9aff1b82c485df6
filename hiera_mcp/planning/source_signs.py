"""The best candidate's source as a criterion: which means of a direction it has, and which are still open."""

from collections.abc import Sequence

from hiera_mcp.model.space import Direction, architecture
from hiera_mcp.planning.parents import best_of
from hiera_mcp.planning.scoring import Answer, Missing, View
from hiera_mcp.planning.source import MEANS, TC, Means, Reading, read_sources

LEAST_SHARE = 0.05
"""Of the time: operators below it make no means worth while."""
_COUNTERS = (("ncu_wgmma_pct", "wgmma"), ("ncu_tma_loads", "TMA"))
"""Metric of a profile that is above zero → what the kernel is built on."""


def source_signs(view: View[Direction]) -> Answer:
    """Much is open where the source has none of a direction's means; little where it has them all."""
    reading = _reading(view)
    fitting = [m for m in MEANS if m.direction is view.option and _fits(view, m)]
    if not fitting:
        raise Missing(f"no means of {view.option} that a source shows fits this task and target")
    if reading.libraries and view.option is TC:
        raise Missing("the source calls libraries, whose instructions it does not show")
    used = [m.name for m in fitting if m.name in reading.used]
    open_ = [m.name for m in fitting if m.name not in reading.used]
    view.quote("source_of_best", {"has": [*used], "has_not": [*open_]})
    return Answer(4 * len(open_) / len(fitting), f"Its source has {_listed(used)}; it has not {_listed(open_)}.")


def few_warps_by_design(view: View[Direction]) -> str:
    """What the best candidate is built on that needs few warps and few blocks: wgmma, TMA, a persistent grid; else empty."""
    evidence, best = view.evidence, best_of(view.evidence.outcomes)
    metrics = {m.name: m.value for m in evidence.profile.metrics} if evidence.profile else {}
    counted = [word for name, word in _COUNTERS if (metrics.get(name) or 0) > 0]
    written = read_sources(best.sources).designs if best else ()
    found = tuple(dict.fromkeys((*counted, *written)))
    view.quote("source_of_best", {"built_on": [*found]})
    return " and ".join(found)


def _reading(view: View[Direction]) -> Reading:
    best = best_of(view.evidence.outcomes)
    if best is None:
        raise Missing("no candidate has passed yet")
    if not best.sources:
        raise Missing("the best candidate's source is not at hand")
    return read_sources(best.sources)


def _fits(view: View[Direction], means: Means) -> bool:
    if view.text("platform") not in means.platforms:
        return False
    if means.direction is TC and view.text("platform") == "cuda" and not view.flag("tensor_core_legal"):
        return False
    arch = "".join(c for c in architecture(view.evidence.target) if c.isdigit())
    if means.least_arch > int(arch or 0) or (means.name == "wgmma" and arch != "90"):
        return False
    shares = [view.number(f"{kind}_share") for kind in means.for_kinds]
    return not shares or sum(shares) >= LEAST_SHARE


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none of the means"
