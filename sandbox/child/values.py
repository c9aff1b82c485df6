"""Constructor arguments as JSON: plain values, tuples, and small tensors."""

import base64
from collections.abc import Callable, Sequence
from typing import Any, cast

MAX_TENSOR_BYTES = 4 << 20


class NotPlain(Exception):
    """A value that cannot cross to the runner; `str()` says which."""


def as_list(result: Any) -> list[Any]:
    """What a forward() returned, one tensor or several, as a list."""
    return list(cast("Sequence[Any]", result)) if isinstance(result, tuple | list) else [result]


def arranger() -> Callable[[Any, frozenset[int]], Any]:
    """Makes a result of a tensor: its values in the contract's order, where a transposed, expanded or conjugated view leaves
    that to its reader, in memory of its own, where it is a view of an input or of the state, whose memory is given. A tensor
    that is so already stays itself. By torch's functions as they are now."""
    import torch

    kind: Any = torch.Tensor
    conjugated, negated, contiguous, copied = kind.resolve_conj, kind.resolve_neg, kind.contiguous, kind.clone
    address = addresser()

    def arrange(tensor: Any, taken: frozenset[int]) -> Any:
        values = contiguous(negated(conjugated(tensor)))
        return copied(values) if address(values) in taken else values

    return arrange


def addresser() -> Callable[[Any], int]:
    """Tells where the memory begins that a tensor lies in. By torch's functions as they are now."""
    import torch

    storage, pointer = cast("Any", torch.Tensor).untyped_storage, cast("Any", torch.UntypedStorage).data_ptr
    return lambda tensor: pointer(storage(tensor))


def encode(value: Any) -> Any:
    """Plain data of `value`; `decode` is the way back.

    Raises:
        NotPlain: it is neither a plain value nor a tensor of at most 4 MiB.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        items = [encode(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, dict):
        return {"dict": [[encode(k), encode(v)] for k, v in value.items()]}  # pyright: ignore[reportUnknownVariableType]
    return _encode_torch(value)


def _encode_torch(value: Any) -> dict[str, Any]:
    import torch

    if isinstance(value, torch.dtype | torch.Size):
        return {"dtype": str(value).removeprefix("torch.")} if isinstance(value, torch.dtype) else encode(tuple(value))
    if not isinstance(value, torch.Tensor):
        raise NotPlain(f"a constructor argument is a {type(value).__name__}, which cannot be handed to a candidate")
    if value.nbytes > MAX_TENSOR_BYTES:
        raise NotPlain(f"a constructor argument is a tensor of {value.nbytes} bytes, more than {MAX_TENSOR_BYTES}")
    raw = value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
    name = str(value.dtype).removeprefix("torch.")
    return {"tensor": base64.b64encode(raw).decode(), "shape": list(value.shape), "of": name}


def decode(data: Any) -> Any:
    """The value that `encode` described."""
    if isinstance(data, list):
        return [decode(v) for v in data]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(data, dict):
        return data
    if "tuple" in data:
        return tuple(decode(v) for v in data["tuple"])  # pyright: ignore[reportUnknownVariableType]
    if "dict" in data:
        return {decode(k): decode(v) for k, v in data["dict"]}  # pyright: ignore[reportUnknownVariableType]
    return _decode_torch(data)  # pyright: ignore[reportUnknownArgumentType]


def _decode_torch(data: dict[str, Any]) -> Any:
    import torch

    if "dtype" in data:
        return getattr(torch, data["dtype"])
    dtype = getattr(torch, data["of"])
    raw = bytearray(base64.b64decode(data["tensor"]))
    if not raw:
        return torch.empty(data["shape"], dtype=dtype)
    return torch.frombuffer(raw, dtype=torch.uint8).view(dtype).view(data["shape"]).clone()
