"""What the planner is told about a run."""

import anyio.to_thread

from hiera_mcp.deps import Deps
from hiera_mcp.machine import gpu_of
from hiera_mcp.model.hardware import Gpu
from hiera_mcp.model.knowledge import Match
from hiera_mcp.model.space import Direction, Target, architecture, is_cpu
from hiera_mcp.planning.evidence import Evidence, gather
from hiera_mcp.planning.memory import cells_of
from hiera_mcp.planning.signals import signals
from hiera_mcp.sandbox import libraries
from hiera_mcp.tools.run_state import RunState

SHOWN_ENTRIES = 6


async def evidence_of(deps: Deps, state: RunState) -> Evidence:
    """Evidence for the next decision of a run; its own rounds are no part of its memory."""
    run, target = state.run, state.contract.target
    names, gpu = await anyio.to_thread.run_sync(_host, target)
    memory = await deps.database(lambda s: cells_of(s.remembered(without_run=run.id))) if run.switches.memory else ()
    strategies = [d.decision.strategy for d in state.decisions if d.decision.strategy]
    return gather(
        state.contract,
        state.judged,
        round=planned_round(state),
        space=run.space,
        direction=run.direction,
        used_entries=[slug for strategy in strategies for slug in strategy.knowledge],
        profile=state.best_profile,
        libraries=names,
        gpu=gpu,
        switches=run.switches,
        memory=memory,
    )


def _host(target: Target) -> tuple[list[str], Gpu | None]:
    """Libraries and GPU of this host for the target; looks at files and may ask the driver."""
    names = [library.name for library in libraries.installed(target)]
    return names, None if is_cpu(target) else gpu_of(target)


def planned_round(state: RunState) -> int:
    """The round that the next decision belongs to: a new one once the present one has candidates."""
    submitted = any(c.round == state.run.round for c in state.candidates)
    return state.run.round + submitted


def matching_entries(deps: Deps, evidence: Evidence, direction: Direction | None) -> tuple[Match, ...]:
    """Knowledge entries that fit the situation, the best first."""
    arch = architecture(evidence.target) or "cpu"
    return deps.knowledge.matching(
        signals(evidence), arch=arch, space=evidence.space, direction=direction, limit=SHOWN_ENTRIES
    )
