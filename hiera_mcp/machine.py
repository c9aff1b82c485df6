"""Facts of the GPU that a target stands for on this host."""

from hiera_mcp.errors import RequestError
from hiera_mcp.knowledge_base import hardware
from hiera_mcp.model.hardware import Gpu
from hiera_mcp.model.space import Target
from hiera_mcp.sandbox import devices


def known_targets() -> tuple[str, ...]:
    """All targets that have hardware facts."""
    return ("cpu", *dict.fromkeys(target for row in hardware.rows() for target in row.default_for))


def gpu_of(target: Target) -> Gpu:
    """This host's GPU when it is of the target's own architecture and known, else the target's default GPU.

    Raises:
        RequestError: no hardware table has the target.
    """
    own = next((gpu for gpu in devices.gpus() if gpu.target == target), None)
    if own is not None:
        try:
            return hardware.gpu_for(target, own.name)
        except RequestError:
            pass  # a name that no table has: the target's default is the best guess, and Peaks.basis names it
    return hardware.gpu_for(target)
