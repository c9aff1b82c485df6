"""Contracts and their files."""

from hiera_mcp.contracts.summary import LISTS
from hiera_mcp.errors import NotFoundError
from hiera_mcp.model.switches import BARE_FILES, NO_CONTRACT_FILES, switches_of
from hiera_mcp.resources.base import TEXT, Ctx, Resource, as_json, deps_of


async def contract(contract_id: str, ctx: Ctx) -> str:
    """A contract in full: parameters, cases, tolerance, features, floor, degeneracy."""
    _check_shown(ctx, contract_id)
    return as_json(await deps_of(ctx).database(lambda s: s.contract(contract_id)))


async def contract_file(contract_id: str, name: str, ctx: Ctx) -> str:
    """One file of a contract: contract.h, groundtruth.py, params_semantics.json, the skeleton, …"""
    files = await deps_of(ctx).database(lambda s: s.contract_files(contract_id))
    if name not in files:
        raise NotFoundError(f"Contract {contract_id} has no file `{name}`.", valid=sorted(files))
    if name not in BARE_FILES:
        _check_shown(ctx, contract_id)
    return files[name]


async def contract_list(contract_id: str, name: str, ctx: Ctx) -> str:
    """One list of a contract in full, a line each: parameters, cases, operators, chains, reductions, libraries, notes, …"""
    if name not in LISTS:
        raise NotFoundError(f"A contract has no list `{name}`.", valid=sorted(LISTS))
    _check_shown(ctx, contract_id)
    return "".join(f"{line}\n" for line in LISTS[name](await deps_of(ctx).database(lambda s: s.contract(contract_id))))


def _check_shown(ctx: Ctx, contract_id: str) -> None:
    """Refuse what an ablation hides."""
    if not switches_of(deps_of(ctx).settings.plan).contract_files:
        valid = [f"hiera://contracts/{contract_id}/files/{name}" for name in BARE_FILES]
        raise NotFoundError(f"This server was started with {NO_CONTRACT_FILES}.", valid=valid)


CONTRACT = Resource("hiera://contracts/{contract_id}", contract, "Contract")
FILE = Resource("hiera://contracts/{contract_id}/files/{name}", contract_file, "Contract file", TEXT)
LIST = Resource("hiera://contracts/{contract_id}/lists/{name}", contract_list, "List of a contract", TEXT)
