"""Theoretical occupancy of a CUDA kernel: arithmetic on its registers, its shared memory and the limits of one SM.

The rules are those of `cuda_occupancy.h` in the CUDA toolkit: registers are given out per warp in units of 256, from
four partitions of an SM; shared memory in units of 128 bytes, of which each block costs 1 KiB more from compute
capability 8.0 on. Limits: CUDA C++ Programming Guide, technical specifications per compute capability.
"""

import re
from dataclasses import dataclass

from hiera_mcp.model.evaluation import KernelResources
from hiera_mcp.model.profile import Occupancy
from hiera_mcp.model.space import Target, architecture

WARP = 32
_PARTITIONS = 4
_SHARED_UNIT = 128
_SHARED_PER_BLOCK = 1024


@dataclass(frozen=True)
class SmLimits:
    """What one SM holds."""

    shared_bytes: int
    warps: int = 64
    blocks: int = 32
    registers: int = 65536
    register_unit: int = 256


_LIMITS: dict[str, SmLimits] = {
    "80": SmLimits(shared_bytes=167_936),
    "86": SmLimits(shared_bytes=102_400, warps=48, blocks=16),
    "87": SmLimits(shared_bytes=167_936, warps=48, blocks=16),
    "89": SmLimits(shared_bytes=102_400, warps=48, blocks=24),
    "90": SmLimits(shared_bytes=233_472),
    "100": SmLimits(shared_bytes=233_472),
    "103": SmLimits(shared_bytes=233_472),
    "120": SmLimits(shared_bytes=102_400, warps=48, blocks=24),
}


def limits_of(target: Target) -> SmLimits | None:
    """Limits of an SM of this architecture; None when they are not known here."""
    return _LIMITS.get(re.sub(r"\D", "", architecture(target)))


def occupancy(kernel: KernelResources, block_threads: int, sm: SmLimits, dynamic_shared: int = 0) -> Occupancy | None:
    """Share of an SM's warps that can be resident, in percent, and what limits it.

    Args:
        block_threads: threads per block, 1 to 1024.
        dynamic_shared: bytes of dynamic shared memory per block, which the binary does not tell.

    Returns:
        None when the kernel's registers are not known.
    """
    if kernel.registers is None:
        return None
    warps = -(-block_threads // WARP)
    bounds: dict[str, int] = {
        "threads": sm.warps // warps,
        "blocks": sm.blocks,
        "registers": _blocks_by_registers(kernel.registers, warps, sm),
        "shared_memory": _blocks_by_shared((kernel.shared_bytes or 0) + dynamic_shared, sm),
    }
    resident = min(bounds.values())
    full = resident * warps >= sm.warps
    limiter = "none" if full else next(name for name, bound in bounds.items() if bound == resident)
    return Occupancy.model_validate(
        {
            "kernel": kernel.kernel,
            "block_threads": block_threads,
            "percent": round(100 * resident * warps / sm.warps, 1),
            "limiter": limiter,
        }
    )


def _blocks_by_registers(registers: int, warps: int, sm: SmLimits) -> int:
    if registers == 0:
        return sm.blocks
    per_warp = _up(registers * WARP, sm.register_unit)
    if per_warp * _up(warps, _PARTITIONS) > sm.registers:
        return 0
    resident_warps = sm.registers // _PARTITIONS // per_warp * _PARTITIONS
    return resident_warps // warps


def _blocks_by_shared(used: int, sm: SmLimits) -> int:
    return sm.shared_bytes // _up(used + _SHARED_PER_BLOCK, _SHARED_UNIT)


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
