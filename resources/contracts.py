"""Contracts and their files."""

from hiera_mcp.errors import NotFoundError
from hiera_mcp.resources.base import TEXT, Ctx, Resource, as_json, deps_of


async def contract(contract_id: str, ctx: Ctx) -> str:
    """A contract in full: parameters, cases, tolerance, features, floor, degeneracy."""
    return as_json(await deps_of(ctx).database(lambda s: s.contract(contract_id)))


async def contract_file(contract_id: str, name: str, ctx: Ctx) -> str:
    """One file of a contract: contract.h, groundtruth.py, params_semantics.json, the skeleton, …"""
    files = await deps_of(ctx).database(lambda s: s.contract_files(contract_id))
    if name not in files:
        raise NotFoundError(f"Contract {contract_id} has no file `{name}`.", valid=sorted(files))
    return files[name]


CONTRACT = Resource("hiera://contracts/{contract_id}", contract, "Contract")
FILE = Resource("hiera://contracts/{contract_id}/files/{name}", contract_file, "Contract file", TEXT)
