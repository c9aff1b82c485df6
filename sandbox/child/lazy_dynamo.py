"""Fake tensors without the import of torch._dynamo, which takes as long as that of torch itself.

FakeTensorMode reads a few settings of `torch._dynamo.config`, and wrapped functions ask for `torch._dynamo.disable`, which has
nothing to do where nothing is compiled. Where a real tensor becomes a fake one (torch.tensor in a constructor, batch norm's
counter), its origin is named by a class of `torch._dynamo.source`, which nobody asks anything where shapes are plain numbers.
A stand-in has these. Whoever asks it for anything else, or imports another submodule, gets the real package in its place.
"""

import importlib
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

NAME, SOURCES = "torch._dynamo", "torch._dynamo.source"


class _StandIn(ModuleType):
    """`torch._dynamo` with its settings and an idle `disable`; any other attribute brings the real one."""

    @staticmethod
    def disable(function: Any, *_: Any, **__: Any) -> Any:
        return function

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(_real(), name)


class _Sources(ModuleType):
    """`torch._dynamo.source` with the classes for a tensor of unknown origin; any other attribute brings the real one."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        _real()
        return getattr(importlib.import_module(SOURCES), name)


class _Finder:
    """Brings the real package before one of its submodules is imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith(f"{NAME}.") or name == f"{NAME}.config":
            return None
        real = _real()
        loaded = sys.modules.get(name)
        return PathFinder.find_spec(name, real.__path__) if loaded is None else ModuleSpec(name, _Loaded(loaded))


class _Loaded(Loader):
    """A loader for a module that the real package has imported already."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


def fake_mode() -> Any:
    """A FakeTensorMode that lets real tensors be mixed in."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    package = Path(torch.__file__).parent / "_dynamo"
    if NAME not in sys.modules and (package / "config.py").is_file():
        _stand_in(torch, package)
    return FakeTensorMode(allow_non_fake_inputs=True)


def _stand_in(parent: Any, package: Path) -> None:
    stand_in: Any = _StandIn(NAME)
    stand_in.__path__ = [str(package)]
    sys.modules[NAME] = parent._dynamo = stand_in
    sys.meta_path.insert(0, _Finder())
    stand_in.config = importlib.import_module(f"{NAME}.config")
    sources: Any = _Sources(SOURCES)
    source: Any = importlib.import_module("torch._guards").Source
    sources.ConstantSource = sources.RandomValueSource = type("UnknownSource", (source,), {"__init__": _unnamed})
    sys.modules[SOURCES] = stand_in.source = sources


def _unnamed(_source: object, _name: str = "") -> None:
    """Keeps no name."""


def _real() -> ModuleType:
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, _Finder)]
    for name in (NAME, SOURCES):
        if isinstance(sys.modules.get(name), _StandIn | _Sources):
            del sys.modules[name]
    return importlib.import_module(NAME)
