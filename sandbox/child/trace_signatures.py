"""What one kind of call costs: FLOPs, traffic, and how many elements go into one result."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from hiera_mcp.sandbox.child import trace_kinds, trace_state
from hiera_mcp.sandbox.child.trace_extents import Extent, extent

GATHERS = frozenset({"embedding", "index_select", "gather", "index", "take"})
"""Of their first tensor these read only what they return."""

OVERWRITES = frozenset({"copy_", "fill_", "zero_", "uniform_", "normal_", "random_", "bernoulli_", "exponential_"})
"""In-place operators that do not read what they overwrite."""


def tensors_of(value: Any) -> list[Any]:
    """The strided tensors in arguments or results, in order."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value] if value.layout is torch.strided else []
    return [t for item in _items(value) for t in tensors_of(item)]


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, list | tuple):
        return cast("Iterable[Any]", value)
    return cast("dict[Any, Any]", value).values() if isinstance(value, dict) else ()


def storage_key(tensor: Any) -> int:
    return tensor.untyped_storage()._cdata


def unique_bytes(tensor: Any) -> int:
    """Bytes of distinct elements: an expanded dimension (stride 0) counts once."""
    points = math.prod(d for d, s in zip(tensor.shape, tensor.stride(), strict=True) if s != 0)
    return int(points) * tensor.element_size()


@dataclass
class Seen:
    """One call: an operator with its tensors."""

    func: Any
    base: str
    """Its name without namespace and overload: `addmm`, `relu_`."""
    args: Any
    kwargs: Any
    given: list[Any]
    """Tensor arguments, in order."""
    written: list[Any]
    """Those of them that it writes to."""
    results: list[Any]
    fresh: list[Any]
    """Results in memory of their own."""

    def key(self) -> Any:
        """Equal for calls of one kind: what decides shapes and costs, and which arguments are one and the same."""
        pieces: dict[Any, int] = {}
        tensors = tuple(
            (t.shape, t.stride(), t.dtype, pieces.setdefault(_piece(t), n), self._overwritten(t))
            for n, t in enumerate(self.given)
        )
        view = len(self.fresh) < len(self.results)
        return (self.func, tensors, view, _plain((self.args, self.kwargs)))

    def read_places(self) -> list[int]:
        """Places in `given` of what it depends on. A part that is overwritten leaves the rest of its memory as it was."""
        return [n for n, t in enumerate(self.given) if self._overwritten(t) != "whole"]

    def _overwritten(self, tensor: Any) -> str:
        if self.base not in OVERWRITES or not any(tensor is w for w in self.written):
            return ""
        whole = tensor.numel() * tensor.element_size() >= tensor.untyped_storage().nbytes()
        return "whole" if whole else "part"

    def piece_bytes(self) -> list[int]:
        """Bytes read of each tensor argument; a piece that is given twice counts once."""
        counted: set[Any] = set()
        sizes: list[int] = []
        for n, t in enumerate(self.given):
            piece = _piece(t)
            sizes.append(0 if self._overwritten(t) or piece in counted else self._bytes(n, t))
            counted.add(piece)
        return sizes

    def _bytes(self, place: int, tensor: Any) -> int:
        if self.base in GATHERS and place == 0:
            return min(unique_bytes(tensor), sum(unique_bytes(r) for r in self.results))
        if self.base.startswith("nll_loss") and place == 0:  # one score per target
            return min(unique_bytes(tensor), self.given[1].numel() * tensor.element_size())
        return unique_bytes(tensor)


def _piece(tensor: Any) -> tuple[Any, ...]:
    return (storage_key(tensor), tensor.storage_offset(), tensor.shape, tensor.stride())


def _plain(value: Any) -> Any:
    """Arguments that are no tensors, as something to compare."""
    import torch

    if isinstance(value, torch.Tensor):
        return None
    if isinstance(value, dict):
        return tuple((k, _plain(v)) for k, v in cast("dict[Any, Any]", value).items())
    return tuple(_plain(v) for v in _items(value)) if isinstance(value, list | tuple) else value


def signature(seen: Seen, out: Any) -> dict[str, Any]:
    """The TracedOperator row of a call, and `piece_bytes`: what it reads of each tensor argument."""
    view = not seen.written and bool(seen.results) and not seen.fresh
    sizes = seen.piece_bytes()
    made = sum(unique_bytes(t) for t in [*seen.fresh, *seen.written])
    reach = Extent() if view else extent(seen.base, _named(seen), seen.results)
    return {
        "name": str(seen.func._overloadpacket),
        "kind": trace_kinds.kind(seen.base),
        "flops": 0.0 if view else flops(seen, out, reach),
        "bytes_read": 0 if view else sum(sizes),
        "bytes_written": 0 if view else made,
        "is_view": view,
        "arguments": [] if view else [_argument(seen, n) for n in seen.read_places()],
        "result": [int(d) for d in seen.results[0].shape] if seen.results else [],
        "reduced": reach.size,
        "reduced_dims": list(reach.dims),
        "settings": {} if view else trace_state.plain(_named(seen)),
        "piece_bytes": sizes,
    }


def _argument(seen: Seen, place: int) -> dict[str, Any]:
    tensor = seen.given[place]
    return {
        "name": _argument_names(seen)[place],
        "shape": [int(d) for d in tensor.shape],
        "strides": [int(s) for s in tensor.stride()],
        "dtype": str(tensor.dtype).removeprefix("torch."),
    }


def _argument_names(seen: Seen) -> list[str]:
    """The schema's name for each of `given`."""
    return [name for name, value in _named(seen).items() for _ in tensors_of(value)]


def _named(seen: Seen) -> dict[str, Any]:
    """All arguments by the names of the schema, in the order in which they were given, defaults last."""
    schema = seen.func._schema.arguments
    given = {a.name: v for a, v in zip(schema, seen.args, strict=False)} | seen.kwargs
    return given | {a.name: a.default_value for a in schema if a.name not in given and a.has_default_value()}


def flops(seen: Seen, out: Any, reach: Extent) -> float:
    """FLOPs of one call: torch's own formula where it has one; for other products two per element that goes
    into each result; else points × operations per point."""
    from torch.utils import flop_counter

    counter: Any = flop_counter
    packet = seen.func._overloadpacket
    if packet in counter.flop_registry:
        return float(counter.flop_registry[packet](*seen.args, **seen.kwargs, out_val=out))
    if trace_kinds.kind(seen.base) == "attention":
        shapes = [t.shape for t in seen.given[:3]]
        if len(shapes) == 3 and all(len(s) == 4 for s in shapes):
            return float(counter.sdpa_flop_count(*shapes))
    if trace_kinds.kind(seen.base) in ("gemm", "conv"):
        return 2.0 * reach.size * seen.results[0].numel()
    return float(_points(seen, reach)) * trace_kinds.cost(seen.base, reach.size, _rows(seen))


def _points(seen: Seen, reach: Extent) -> int:
    if seen.base in trace_kinds.PER_RESULT:
        return reach.size * seen.results[0].numel()
    return max((t.numel() for t in (*seen.given, *seen.results)), default=0)


def _rows(seen: Seen) -> int:
    return int(seen.given[0].shape[-1]) if seen.given and seen.given[0].dim() else 1
