"""The CUDA runtime through cupy's thin binding: memory, streams, events."""

import importlib
from typing import Any


def cuda_runtime() -> Any:
    """cupy's runtime module; its functions have the names of the C API without `cuda`, and raise CUDARuntimeError."""
    return importlib.import_module("cupy.cuda").runtime
