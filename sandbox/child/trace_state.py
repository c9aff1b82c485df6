"""The state of a reference: parameters, buffers, and tensors that are plain attributes."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from hiera_mcp.sandbox.child import trace_values


@dataclass
class StateTensor:
    """A parameter, a buffer, or a tensor that a module keeps as a plain attribute."""

    path: str
    tensor: Any
    buffer: bool
    module_path: str
    module: Any
    aliases: tuple[str, ...] = ()
    """Further paths of the same tensor."""


def state_of(model: Any) -> list[StateTensor]:
    """Parameters, then buffers, then tensors that are plain attributes; each once, under its first path.

    Each is reached from the model by the attribute names of its path.
    """
    owners = dict(model.named_modules())
    aliases = _aliases(model)
    found = [(p, t, False) for p, t in model.named_parameters()]
    found += [(p, t, True) for p, t in model.named_buffers()]
    taken = {id(t) for _, t, _ in found}
    for path, tensor in _attributes(owners):
        if id(tensor) not in taken:
            taken.add(id(tensor))
            found.append((path, tensor, True))
    return [_state_tensor(path, tensor, buffer, owners, aliases) for path, tensor, buffer in found]


def _aliases(model: Any) -> dict[int, tuple[str, ...]]:
    """id of a parameter or buffer → all of its paths."""
    named = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    found: dict[int, tuple[str, ...]] = {}
    for path, tensor in named:
        found[id(tensor)] = (*found.get(id(tensor), ()), path)
    return found


def _attributes(owners: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    import torch

    for prefix, module in owners.items():
        for name, value in cast("dict[str, Any]", vars(module)).items():
            if isinstance(value, torch.Tensor):
                yield f"{prefix}.{name}".lstrip("."), value


def _state_tensor(
    path: str, tensor: Any, buffer: bool, owners: dict[str, Any], aliases: dict[int, tuple[str, ...]]
) -> StateTensor:
    module_path = path.rpartition(".")[0]
    others = tuple(p for p in aliases.get(id(tensor), ()) if p != path)
    return StateTensor(path, tensor, buffer, module_path, owners.get(module_path, owners[""]), others)


def row(item: StateTensor, written: Collection[str] = ()) -> dict[str, Any]:
    """A TracedParameter row.

    Args:
        written: owners that forward() writes to.
    """
    what = "Buffer" if item.buffer else "Parameter"
    spec = trace_values.spec("x", item.tensor, f"{what} `{item.path}`")
    dense = item.tensor.is_contiguous()
    return {
        "path": item.path,
        "shape": spec["shape"],
        "dtype": spec["dtype"],
        "buffer": item.buffer,
        "module_path": item.module_path,
        "module_type": type(item.module).__name__,
        "module_repr": " ".join(repr(item.module).split())[:200],
        "torch_type": torch_type(item.module),
        "settings": settings(item.module),
        "strides": [] if dense else [int(s) for s in item.tensor.stride()],
        "aliases": list(item.aliases),
        "updated": f"state.{item.path}" in written,
    }


def torch_type(module: Any) -> str:
    """The class of torch.nn whose forward() a module runs; empty where it has a forward() of its own."""
    kind: type = module.__class__
    bases = [
        c for c in kind.__mro__ if c.__module__.startswith("torch.nn.") and not c.__name__.startswith("Parametrized")
    ]
    defining = next((c for c in kind.__mro__ if "forward" in vars(c)), kind)
    return bases[0].__name__ if defining in bases and bases[0].__name__ != "Module" else ""


def settings(module: Any) -> dict[str, Any]:
    """The module's plain public attributes: numbers, booleans, short strings, and short lists of numbers."""
    return plain({k: v for k, v in cast("dict[str, Any]", vars(module)).items() if k[0] != "_" and k != "training"})


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Of named values, the numbers, booleans, short strings, and short lists of numbers."""
    kept = {k: _setting(v) for k, v in values.items()}
    return {k: v for k, v in kept.items() if v is not None}


def _setting(value: Any) -> Any:
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return value if len(value) <= 80 else None
    if isinstance(value, list | tuple):
        items = [_setting(v) for v in cast("Sequence[Any]", value)]
        plain = 0 < len(items) <= 16 and all(isinstance(v, bool | int | float) for v in items)
        return items if plain else None
    return None
