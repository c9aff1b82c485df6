"""Targets, implementation spaces and optimisation directions (HIERA, arXiv 2608.21157, sections on SSDA)."""

import re
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator

_TARGET = re.compile(r"^(cpu|cuda:sm_\d{2,3}[af]?)$")


def _check_target(text: str) -> str:
    if not _TARGET.match(text):
        raise ValueError("a target is `cpu` or `cuda:sm_NN`, for example cuda:sm_80 (A100) or cuda:sm_90a (H100, H200)")
    return text


Target = Annotated[str, AfterValidator(_check_target)]
"""What candidates are built for: `cpu`, or `cuda:sm_80`, `cuda:sm_90a`, …"""


class Space(StrEnum):
    """An implementation space. On each platform the three are nested: each allows all that the one before it allows."""

    CUDA = "cuda"
    CUDA_LIBRARIES = "cuda_libraries"
    CUDA_LIBRARIES_PYTORCH = "cuda_libraries_pytorch"
    CPP = "cpp"
    CPP_LIBRARIES = "cpp_libraries"
    CPP_LIBRARIES_PYTORCH = "cpp_libraries_pytorch"

    @property
    def allows_libraries(self) -> bool:
        return self not in (Space.CUDA, Space.CPP)

    @property
    def allows_pytorch(self) -> bool:
        return self in (Space.CUDA_LIBRARIES_PYTORCH, Space.CPP_LIBRARIES_PYTORCH)


class Direction(StrEnum):
    """One of the five optimisation directions that SSDA scores."""

    CONTROL_FLOW = "control_flow"
    PARALLELISM = "parallelism"
    MEMORY_TRANSACTIONS = "memory_transactions"
    REUSE_PIPELINING = "reuse_pipelining"
    TENSOR_CORE_INSTRUCTIONS = "tensor_core_instructions"


def is_cpu(target: Target) -> bool:
    return target == "cpu"


def architecture(target: Target) -> str:
    """`sm_90a` of `cuda:sm_90a`; the empty string for `cpu`."""
    return target.partition(":")[2]


def spaces_of(target: Target) -> tuple[Space, Space, Space]:
    """The three nested spaces of a target, the smallest first."""
    if is_cpu(target):
        return (Space.CPP, Space.CPP_LIBRARIES, Space.CPP_LIBRARIES_PYTORCH)
    return (Space.CUDA, Space.CUDA_LIBRARIES, Space.CUDA_LIBRARIES_PYTORCH)


def source_file(target: Target) -> str:
    """The file that the agent writes for this target (the paper's name on CUDA)."""
    return "cpu_source.cpp" if is_cpu(target) else "cuda_source.cu"


MODEL_FILE = "model_new.py"
"""The second file that the agent may write, in the PyTorch space only: KernelBench's `ModelNew`."""
