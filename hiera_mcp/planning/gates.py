"""Gates: rules that no score and no reason overrules; and the one rule that asks for a reason.

Every text starts with the gate's id, so that an error can name it.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from hiera_mcp.model.knowledge import Entry
from hiera_mcp.model.space import Direction, Space, architecture, is_cpu
from hiera_mcp.planning.evidence import Evidence
from hiera_mcp.planning.history import lost_rounds

Option = TypeVar("Option")

LOSSES_THAT_NEED_A_REASON = 2


def fixed_space(evidence: Evidence, space: Space) -> str | None:
    """An ablation: the run was started for one space."""
    fixed = evidence.switches.fixed_space
    return None if fixed in (None, space) else f"the run was started for {fixed} alone"


def library_installed(evidence: Evidence, space: Space) -> str | None:
    if space is evidence.spaces[1] and evidence.libraries == ():
        return f"no maths library for {evidence.target} is installed on this host"
    return None


def tensor_core_legal(evidence: Evidence, direction: Direction) -> str | None:
    """On cpu the direction stands for vector instructions, which are always legal."""
    if direction is not Direction.TENSOR_CORE_INSTRUCTIONS or is_cpu(evidence.target):
        return None
    return None if evidence.features.tensor_core_legal else evidence.features.tensor_core_reason or "not legal here"


def repeated_loser(evidence: Evidence, direction: Direction) -> str | None:
    lost = lost_rounds(evidence, direction)
    if len(lost) < LOSSES_THAT_NEED_A_REASON:
        return None
    return f"{direction} gave nothing faster in rounds {', '.join(map(str, lost))}"


def entry_space(evidence: Evidence, entry: Entry) -> str | None:
    if evidence.space is None or entry.allows_space(evidence.space):
        return None
    return f"{entry.id} needs a larger space than {evidence.space}"


def entry_arch(evidence: Evidence, entry: Entry) -> str | None:
    arch = architecture(evidence.target) or "cpu"
    return None if entry.allows_arch(arch) else f"{entry.id} is for {', '.join(entry.archs)}, not for {arch}"


def entry_library(evidence: Evidence, entry: Entry) -> str | None:
    if not entry.libraries or evidence.libraries is None or not set(entry.libraries).isdisjoint(evidence.libraries):
        return None
    return f"{entry.id} needs {' or '.join(entry.libraries)}, which this host does not have"


SPACE_GATES: Mapping[str, Callable[[Evidence, Space], str | None]] = MappingProxyType(
    {"fixed_space": fixed_space, "library_installed": library_installed}
)
DIRECTION_GATES: Mapping[str, Callable[[Evidence, Direction], str | None]] = MappingProxyType(
    {"tensor_core_legal": tensor_core_legal}
)
DIRECTION_REASONS: Mapping[str, Callable[[Evidence, Direction], str | None]] = MappingProxyType(
    {"repeated_loser": repeated_loser}
)
"""Rules that do not forbid, but ask for a reason even when the option is the recommended one."""
ENTRY_GATES: Mapping[str, Callable[[Evidence, Entry], str | None]] = MappingProxyType(
    {"entry_space": entry_space, "entry_arch": entry_arch, "entry_library": entry_library}
)


def space_gates(evidence: Evidence, space: Space) -> tuple[str, ...]:
    """Texts of the gates that forbid a space; empty when it may be chosen."""
    return _shut(SPACE_GATES, evidence, space)


def direction_gates(evidence: Evidence, direction: Direction) -> tuple[str, ...]:
    return _shut(DIRECTION_GATES, evidence, direction)


def reasons_required(evidence: Evidence, direction: Direction) -> tuple[str, ...]:
    """Texts of the rules that ask for a reason before this direction is chosen."""
    return _shut(DIRECTION_REASONS, evidence, direction)


def entry_gates(evidence: Evidence, entry: Entry) -> tuple[str, ...]:
    return _shut(ENTRY_GATES, evidence, entry)


def _shut(
    gates: Mapping[str, Callable[[Evidence, Option], str | None]], evidence: Evidence, option: Option
) -> tuple[str, ...]:
    found = ((name, gate(evidence, option)) for name, gate in gates.items())
    return tuple(f"{name}: {why}" for name, why in found if why)
