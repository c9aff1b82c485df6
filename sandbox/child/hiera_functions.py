"""How model_new.py calls its compiled functions: `extern "C"` functions of case0.so, on torch tensors.

    from hiera_functions import function
    scale = function("my_scale", "tensor tensor int64 float32 stream")
    scale(x, y, x.numel(), 2.0)

A tensor is passed as its data pointer and must be contiguous; `stream` is torch's current stream and is not given by the
caller (on cpu it is null). The function returns an int; anything but 0 raises.
"""

import ctypes
import functools
from collections.abc import Callable
from typing import Any

_SCALARS: dict[str, Any] = {
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "bool": ctypes.c_bool,
}
KINDS = ("tensor", "stream", *_SCALARS)

library_path = "/box/case0.so"


def function(name: str, signature: str = "") -> Callable[..., None]:
    """A callable for the function `name` of case0.so.

    Args:
        name: the function's name; it must be `extern "C"` and return int.
        signature: its parameters, separated by blanks: tensor, stream, int32, int64, float32, float64, bool.

    Raises:
        ValueError: a word of the signature is none of these.
        AttributeError: the library has no such function.
    """
    kinds = tuple(signature.split())
    unknown = [k for k in kinds if k not in KINDS]
    if unknown:
        raise ValueError(f"unknown kinds in the signature of {name}: {unknown}. Valid: {', '.join(KINDS)}.")
    target = getattr(_library(library_path), name)
    target.restype = ctypes.c_int
    target.argtypes = [_SCALARS.get(k, ctypes.c_void_p) for k in kinds]

    def call(*args: Any) -> None:
        code = target(*_converted(name, kinds, args))
        if code:
            raise RuntimeError(f"{name} returned {code}")

    return call


@functools.cache
def _library(path: str) -> ctypes.CDLL:
    return ctypes.CDLL(path)


def _converted(name: str, kinds: tuple[str, ...], args: tuple[Any, ...]) -> list[Any]:
    wanted = len(kinds) - kinds.count("stream")
    if len(args) != wanted:
        raise TypeError(f"{name} takes {wanted} arguments ({' '.join(kinds)}), {len(args)} were given")
    rest = iter(args)
    return [_stream() if k == "stream" else _pointer(name, next(rest)) if k == "tensor" else next(rest) for k in kinds]


def _pointer(name: str, value: Any) -> int:
    if not value.is_contiguous():
        raise ValueError(f"{name} got a tensor that is not contiguous; call .contiguous() first")
    return value.data_ptr()


def _stream() -> int | None:
    import torch

    return torch.cuda.current_stream().cuda_stream if torch.cuda.is_initialized() else None
