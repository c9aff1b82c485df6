"""A TorchDispatchMode from a function."""

from collections.abc import Callable
from typing import Any

Handle = Callable[[Any, Any, dict[str, Any]], Any]
"""Receives an operator, its arguments and keyword arguments; gives its result."""


def dispatch_mode(handle: Handle) -> Any:
    """A context manager in which every operator goes through `handle`, which works outside of it."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # the wrapper that does so would import torch._dynamo

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return handle(func, args, kwargs or {})

    return Mode()
