"""Fake tensors without the import of torch._dynamo, which takes as long as that of torch itself.

FakeTensorMode itself reads a few settings of `torch._dynamo.config`, and nothing else of the package. A stand-in has them.
Whoever imports the package, as some operators' shape rules do, or asks the stand-in for anything else, gets the real one.
"""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

NAME = "torch._dynamo"


class _StandIn(ModuleType):
    """`torch._dynamo` with its settings alone; any other attribute brings the real one."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module(NAME), name)


def fake_mode() -> Any:
    """A FakeTensorMode that lets real tensors be mixed in."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    package = Path(torch.__file__).parent / "_dynamo"
    if NAME in sys.modules or not (package / "config.py").is_file():
        return FakeTensorMode(allow_non_fake_inputs=True)
    stand_in: Any = _StandIn(NAME)
    stand_in.__path__ = [str(package)]
    sys.modules[NAME] = stand_in
    try:
        stand_in.config = importlib.import_module(f"{NAME}.config")
        parent: Any = torch
        parent._dynamo = stand_in
        _unwrap(FakeTensorMode)
        return FakeTensorMode(allow_non_fake_inputs=True)
    finally:
        del sys.modules[NAME]


def _unwrap(mode: Any) -> None:
    """The mode's dispatch is wrapped so that dynamo leaves it alone; the first call through the wrapper imports dynamo,
    unless the function says already what takes its place."""
    raw: Any = getattr(mode.__dict__["__torch_dispatch__"], "__wrapped__", None)
    if raw is not None:
        setattr(raw, "__dynamo_disable", raw)
