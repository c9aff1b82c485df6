"""The recorder: sees each ATen operator of forward() with its FLOPs, traffic, randomness and writes."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hiera_mcp.sandbox.child import trace_kinds

GATHERS = frozenset({"embedding", "index_select", "gather", "index", "take"})
"""Of their first tensor these read only what they return."""

OVERWRITES = frozenset({"copy_", "fill_", "zero_", "uniform_", "normal_", "random_", "bernoulli_", "exponential_"})
"""In-place operators that do not read what they overwrite."""


@dataclass
class Storages:
    """Who owns which memory. Weak references keep an address from being used twice, without holding the data."""

    names: dict[int, str] = field(default_factory=dict[int, str])
    _kept: list[Any] = field(default_factory=list[Any])

    def add(self, tensor: Any, name: str) -> None:
        from torch.multiprocessing.reductions import StorageWeakRef

        key = storage_key(tensor)
        if key not in self.names:
            self.names[key] = name
            self._kept.append(StorageWeakRef(tensor.untyped_storage()))

    def owner(self, tensor: Any) -> str | None:
        """The name given by `add`; the empty string for a result of forward(), None for memory never seen before."""
        return self.names.get(storage_key(tensor))


def storage_key(tensor: Any) -> int:
    return tensor.untyped_storage()._cdata


@dataclass
class Record:
    """What forward() did."""

    operators: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    touched: dict[str, dict[Any, int]] = field(default_factory=dict[str, dict[Any, int]])
    """Owner → distinct pieces read, each with its bytes."""
    written: list[str] = field(default_factory=list[str])
    """Owners that forward() wrote to."""
    random: list[str] = field(default_factory=list[str])
    """Operators that drew random numbers."""
    captured: list[str] = field(default_factory=list[str])
    """Tensors that forward() read although they are neither argument nor state, as text."""


def unique_bytes(tensor: Any) -> int:
    """Bytes of distinct elements: an expanded dimension (stride 0) counts once."""
    points = math.prod(d for d, s in zip(tensor.shape, tensor.stride(), strict=True) if s != 0)
    return int(points) * tensor.element_size()


def tensors_of(value: Any) -> list[Any]:
    import torch
    from torch.utils import _pytree

    return [v for v in _pytree.tree_leaves(value) if isinstance(v, torch.Tensor) and v.layout is torch.strided]


def is_random(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether this call draws random numbers. Attention and dropout carry the tag even when they are told not to."""
    import torch

    if torch.Tag.nondeterministic_seeded not in func.tags:
        return False
    for n, parameter in enumerate(func._schema.arguments):
        if parameter.name in ("dropout_p", "p", "train", "training"):
            value = args[n] if n < len(args) else kwargs.get(parameter.name, parameter.default_value)
            if parameter.name != "p" and not value:
                return False
    return True


def recorder(storages: Storages) -> tuple[Any, Record]:
    """A TorchDispatchMode to enter around forward(), and the record that it fills."""
    from torch.utils._python_dispatch import TorchDispatchMode

    record = Record()

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            known = {id(t): storages.owner(t) for t in tensors_of((args, kwargs))}
            out = func(*args, **kwargs)
            if func.namespace != "prim":
                _note(record, storages, func, args, kwargs, out, known)
            return out

    return Recorder(), record


def _note(
    record: Record, storages: Storages, func: Any, args: Any, kwargs: Any, out: Any, known: dict[int, str | None]
) -> None:
    name = str(func._overloadpacket)
    base = name.rpartition(".")[2]
    results = tensors_of(out)
    if not results and not known:
        return
    if is_random(func, args, kwargs):
        record.random.append(name)
    writes = _written(func, args, kwargs)
    reads = [t for t in tensors_of((args, kwargs)) if not (base in OVERWRITES and any(t is w for w in writes))]
    arguments = {storage_key(t) for t in tensors_of((args, kwargs))}
    view = not writes and bool(results) and all(storage_key(t) in arguments for t in results)
    for t in results:
        storages.add(t, "")
    record.written += [o for w in writes if (o := storages.owner(w))]
    if base.startswith(("empty", "new_empty", "lift_fresh")):
        return
    fresh = [t for t in results if storage_key(t) not in arguments]
    traffic = (0, 0) if view else (_read_bytes(base, reads, results), sum(unique_bytes(t) for t in [*fresh, *writes]))
    record.operators.append(
        {
            "name": name,
            "kind": trace_kinds.kind(name),
            "flops": 0.0 if view else flops(func, args, kwargs, out),
            "bytes_read": traffic[0],
            "bytes_written": traffic[1],
            "is_view": view,
        }
    )
    if not view:
        _touch(record, storages, base, reads, results, known)


def _written(func: Any, args: Any, kwargs: Any) -> list[Any]:
    found: list[Any] = []
    for n, parameter in enumerate(func._schema.arguments):
        if parameter.is_write:
            found += tensors_of(args[n] if n < len(args) else kwargs.get(parameter.name))
    if func._schema.name == "aten::native_batch_norm" and args[5]:  # its schema does not declare this write
        found += tensors_of(args[3:5])
    return found


def _read_bytes(base: str, reads: list[Any], results: list[Any]) -> int:
    sizes: dict[Any, int] = {_piece(t): unique_bytes(t) for t in reads}
    if base in GATHERS and reads:
        sizes[_piece(reads[0])] = min(unique_bytes(reads[0]), sum(unique_bytes(t) for t in results))
    return sum(sizes.values())


def _piece(tensor: Any) -> tuple[Any, ...]:
    return (storage_key(tensor), tensor.storage_offset(), tuple(tensor.shape), tensor.stride())


def _touch(
    record: Record, storages: Storages, base: str, reads: list[Any], results: list[Any], known: dict[int, str | None]
) -> None:
    for n, t in enumerate(reads):
        owner = known.get(id(t))
        size = unique_bytes(t)
        if base in GATHERS and n == 0:
            size = min(size, sum(unique_bytes(r) for r in results))
        if owner:
            touch(record, owner, t, size)
        elif owner is None:
            record.captured.append(f"{list(t.shape)} {str(t.dtype).removeprefix('torch.')}")
            storages.add(t, "")


def touch(record: Record, owner: str | None, tensor: Any, size: int | None = None) -> None:
    """Note that a piece of an input or of state was read: by an operator, or as an output that is a view of it."""
    if owner:
        record.touched.setdefault(owner, {})[_piece(tensor)[1:]] = unique_bytes(tensor) if size is None else size


def flops(func: Any, args: Any, kwargs: Any, out: Any) -> float:
    """FLOPs of one call: torch's own formula where it has one, else points × operations per point."""
    from torch.utils import flop_counter

    counter: Any = flop_counter
    packet = func._overloadpacket
    name = str(packet)
    if packet in counter.flop_registry:
        return float(counter.flop_registry[packet](*args, **kwargs, out_val=out))
    if trace_kinds.kind(name) == "attention":
        shapes = [t.shape for t in tensors_of(args)[:3]]
        if len(shapes) == 3 and all(len(s) == 4 for s in shapes):
            return float(counter.sdpa_flop_count(*shapes))
    return float(_points(name, args, kwargs, out)) * trace_kinds.cost(name)


def _points(name: str, args: Any, kwargs: Any, out: Any) -> int:
    everything: Iterable[Any] = [*tensors_of((args, kwargs)), *tensors_of(out)]
    points = max((t.numel() for t in everything), default=0)
    base = name.rpartition(".")[2]
    if base in ("mv", "addmv", "dot", "vdot"):
        return 2 * points
    if "_pool" in base and not base.startswith(("_adaptive", "adaptive")) and len(args) > 1:
        window = math.prod(args[1]) if isinstance(args[1], list | tuple) else int(args[1])
        return window * tensors_of(out)[0].numel()
    return points
