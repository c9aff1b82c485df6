"""Facts about a GPU that the floor, the gates and the occupancy arithmetic read."""

from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.space import Target


class Gpu(Model):
    """One GPU. Dense rates; the tables in knowledge_base/hardware name their sources."""

    name: Text
    """As the driver reports it, for example `NVIDIA H200`."""
    target: Target
    """The target that uses all of its instructions."""
    sms: int
    memory_bytes: int
    bandwidth: float
    """Nominal DRAM bandwidth, bytes per second."""
    l2_bytes: int
    peak_flops: dict[str, float]
    """Unit → FLOP per second: fp64, fp64_tensor, fp32, fp16, tf32_tensor, fp16_tensor, bf16_tensor, fp8_tensor."""
    registers_per_sm: int = 65536
    register_unit: int = 256
    """Registers are allocated per warp in this unit."""
    threads_per_sm: int = 2048
    warps_per_sm: int = 64
    blocks_per_sm: int = 32
    shared_bytes_per_sm: int
    shared_bytes_per_block: int
    """Opt-in maximum of dynamic shared memory per block."""
    features: tuple[str, ...]
    """cp_async, ldmatrix, mma_sync, tma, clusters, wgmma, setmaxnreg, tcgen05, fp8, …"""
    source: Text


class Peaks(Model):
    """What a floor is computed from: one bandwidth and one arithmetic rate, with their origin."""

    bandwidth: float
    """Bytes per second."""
    flops: dict[str, float]
    """Unit → FLOP per second; `fp32` is always there."""
    basis: Text
