"""What this host can do."""

from hiera_mcp.resources.base import Ctx, Resource, as_json, deps_of


async def doctor(ctx: Ctx, thorough: bool = False) -> str:
    """What this host offers: isolation, compilers, targets, GPUs, and what to install. `thorough` probes by doing."""
    return as_json(await deps_of(ctx).executor.doctor(thorough))


DOCTOR = Resource("hiera://doctor{?thorough}", doctor, "Doctor")
