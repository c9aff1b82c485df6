"""A contract as the agent sees it: pure builders. What does not fit is said, with the address of the whole."""

from collections.abc import Sequence

from hiera_mcp.contracts.bindings import interface_text
from hiera_mcp.contracts.header import fields
from hiera_mcp.contracts.summary import LISTS, degeneracy_text, floors_text, parameter_groups, tolerance_text
from hiera_mcp.model.contract import Contract, Features, Floor
from hiera_mcp.model.space import source_file
from hiera_mcp.model.switches import BARE_FILES
from hiera_mcp.tools.budget import Section, clipped, cut, fit, tokens
from hiera_mcp.tools.views import ContractView, FeaturesView, FloorView

MOST_TOKENS = 2800
"""Of a view as indented JSON. With what a tool's result adds (state, job, next step) it stays below 3,000."""
WANTED: tuple[tuple[str, int, int], ...] = (
    ("hiera_inputs", 24, 24),
    ("hiera_outputs", 24, 24),
    ("cases", 1, 3),
    ("handling", 8, 8),
    ("parameters", 6, 16),
    ("operators", 4, 8),
    ("chains", 3, 6),
    ("notes", 4, 8),
    ("libraries", 2, 5),
    ("reductions", 2, 4),
    ("hiera_params", 4, 12),
    ("reuse", 1, 4),
)
"""What is cut when there is too much, the most wanted first, with `least` and `good` of its section."""


def contract_view(contract: Contract, files: Sequence[str]) -> ContractView:
    """The contract in short, in at most MOST_TOKENS tokens, with the addresses of its files."""
    identity = contract.id
    sections = [_section(contract, f"hiera://contracts/{identity}", *wanted) for wanted in WANTED]
    bare = _view(contract, identity, files, {s.name: () for s in sections})
    shown = fit(sections, MOST_TOKENS - tokens(bare.model_dump_json(indent=2)))
    return _view(contract, identity, files, {s.name: cut(s, shown[s.name]) for s in sections})


def bare_view(view: ContractView) -> ContractView:
    """What is left of a view where contract files are switched off: the reference and what candidates must implement."""
    none: tuple[str, ...] = ()
    lists: dict[str, tuple[str, ...]] = {n: none for n in ("operators", "chains", "reductions", "reuse", "libraries")}
    return view.model_copy(
        update={
            **dict.fromkeys(("handling", "parameters", "notes"), none),
            **dict.fromkeys(("tolerance", "degeneracy"), ""),
            "features": view.features.model_copy(update=lists),
            "files": {name: uri for name, uri in view.files.items() if name in BARE_FILES},
        }
    )


def _section(contract: Contract, address: str, name: str, least: int, good: int) -> Section:
    if name.startswith("hiera_"):
        return Section(name, fields(contract, brief=True)[name], least, good, f"{address}/files/contract.h")
    where = f"{address}/lists/{name}"
    if name == "parameters":
        return Section(name, parameter_groups(contract.parameters, where), least, good, where, " kinds")
    return Section(name, LISTS[name](contract), least, good, where)


def _view(contract: Contract, identity: str, files: Sequence[str], lists: dict[str, tuple[str, ...]]) -> ContractView:
    whole = f"hiera://contracts/{identity}"
    structs = {name: _as_comment(lines) for name, lines in lists.items() if name.startswith("hiera_")}
    return ContractView(
        contract_id=identity,
        task=contract.task.name,
        target=contract.target,
        precision=contract.precision,
        spaces=contract.spaces,
        source_file=source_file(contract.target),
        interface=interface_text(contract, structs),
        cases=lists["cases"],
        handling=lists["handling"],
        parameters=lists["parameters"],
        floor=floor_view(contract, whole),
        features=features_view(contract.features, lists, whole),
        tolerance=clipped(tolerance_text(contract.tolerance), whole),
        degeneracy=clipped(degeneracy_text(contract.degeneracy), whole),
        notes=lists["notes"],
        files={name: f"{whole}/files/{name}" for name in files},
    )


def _as_comment(lines: Sequence[str]) -> tuple[str, ...]:
    """Fields of a struct; what is said of those left out becomes a comment."""
    return tuple(f"    /* {line} */" if line.startswith("…") else line for line in lines)


def floor_view(contract: Contract, whole: str) -> FloorView:
    floor: Floor = contract.floor
    return FloorView(
        seconds=floor.seconds,
        bound=floor.bound,
        arithmetic=clipped(floor.arithmetic, whole),
        basis=clipped(floor.basis, whole),
        elsewhere=clipped(floors_text(contract.floors), whole),
    )


def unused_text(features: Features) -> str:
    if not features.unused:
        return ""
    return f"{', '.join(features.unused)}: {features.unused_share:.0%} of the time"


def features_view(features: Features, lists: dict[str, tuple[str, ...]], whole: str) -> FeaturesView:
    """The workload's figures, and its lists as far as they are shown."""
    return FeaturesView(
        flops=features.flops,
        compulsory_bytes=features.compulsory_bytes,
        unfused_bytes=features.unfused_bytes,
        parameter_bytes=features.parameter_bytes,
        arithmetic_intensity=float(f"{features.arithmetic_intensity:.4g}"),
        launches=features.launches,
        depth=features.depth,
        tensor_core_legal=features.tensor_core_legal,
        tensor_core_reason=clipped(features.tensor_core_reason, whole),
        uncovered_share=round(features.uncovered_share, 3),
        unused=clipped(unused_text(features), whole),
        **{name: lists[name] for name in ("operators", "chains", "reductions", "reuse", "libraries")},
    )
