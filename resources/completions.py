"""Completions for the arguments of resource templates and prompts, by argument name."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType

from hiera_mcp.deps import Deps
from hiera_mcp.knowledge_base import hardware
from hiera_mcp.machine import known_targets
from hiera_mcp.planning.rubrics import RUBRICS

RECENT = 20
"""Runs whose candidates are offered."""

Values = Callable[[Deps], Awaitable[Iterable[str]]]


async def complete(deps: Deps, argument: str, value: str) -> list[str]:
    """Values of an argument that begin with `value`; empty for arguments that are free text."""
    values = VALUES.get(argument)
    return [] if values is None else [v for v in await values(deps) if v.startswith(value)]


async def _contracts(deps: Deps) -> Iterable[str]:
    return [c.id for c in await deps.database(lambda s: s.contracts())]


async def _runs(deps: Deps) -> Iterable[str]:
    return [run.id for run in await deps.database(lambda s: s.runs())]


async def _candidates(deps: Deps) -> Iterable[str]:
    return await deps.database(lambda s: [c.id for run in s.runs(RECENT) for c in s.candidates(run.id)])


async def _entries(deps: Deps) -> Iterable[str]:
    return [entry.id for entry in deps.knowledge.entries]


async def _gpus(_: Deps) -> Iterable[str]:
    return [row.slug for row in hardware.rows()]


async def _rubrics(_: Deps) -> Iterable[str]:
    return RUBRICS


async def _targets(_: Deps) -> Iterable[str]:
    return ("auto", *known_targets())


VALUES: Mapping[str, Values] = MappingProxyType(
    {
        "contract_id": _contracts,
        "run_id": _runs,
        "candidate_id": _candidates,
        "slug": _entries,
        "gpu": _gpus,
        "rubric": _rubrics,
        "target": _targets,
    }
)
