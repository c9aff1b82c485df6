"""Arguments and results of the reference: names, shapes, element types, and what a contract cannot hold."""

import inspect
import math
import re
from collections.abc import Sequence
from typing import Any, cast

from hiera_mcp.sandbox.child.trace_load import Refused, kind_of

DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
"""The element types of a contract (hiera_mcp.model.contract.DType)."""

SCALARS = ("int", "float", "bool", "str", "None")


def cast_to(value: Any, precision: str) -> Any:
    """Floating-point tensors take the contract's precision; integers, booleans and plain values stay as they are."""
    import torch

    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.to(getattr(torch, precision))
    return value


def seed(value: int) -> None:
    """Seed the generators that get_inputs() and constructors draw from."""
    import random

    import torch

    generators: Any = torch
    generators.manual_seed(value)
    random.seed(value)


def unique(name: str, taken: set[str]) -> str:
    """`name` as an ASCII identifier that is not taken yet."""
    base = re.sub(r"[^A-Za-z0-9_]", "_", name) or "arg"
    base = f"arg_{base}" if base[0].isdigit() else base
    result, n = base, 1
    while result in taken:
        n += 1
        result = f"{base}_v{n}"
    taken.add(result)
    return result


def forward_names(model: Any, count: int) -> list[str]:
    """Names of the `count` positional arguments of forward(), unique ASCII identifiers."""
    try:
        parameters = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "arg")
    names += [f"{rest}{n}" for n in range(count - len(names))]
    taken: set[str] = set()
    return [unique(n, taken) for n in names[:count]]


def spec(name: str, tensor: Any, where: str) -> dict[str, Any]:
    """A TensorSpec as plain data.

    Raises:
        Refused: a layout, element type or size that a contract cannot hold.
    """
    import torch

    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.layout is not torch.strided:
        raise Refused(f"{where} has layout {tensor.layout}.", "Use dense (strided) tensors.")
    if dtype not in DTYPES:
        complex_hint = " (split a complex tensor with torch.view_as_real)" if tensor.is_complex() else ""
        raise Refused(f"{where} has element type {dtype}.", f"Use a supported element type{complex_hint}.", DTYPES)
    if tensor.numel() == 0:
        raise Refused(f"{where} is empty: shape {list(tensor.shape)}.", "Give every dimension at least one element.")
    return {"name": name, "shape": [int(d) for d in tensor.shape], "dtype": dtype}


def split_arguments(names: list[str], args: list[Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Forward arguments as (TensorSpecs, Scalars).

    Raises:
        Refused: an argument that is neither a tensor nor a plain value.
    """
    import torch

    inputs: list[dict[str, Any]] = []
    scalars: list[dict[str, Any]] = []
    for name, value in zip(names, args, strict=True):
        if isinstance(value, torch.Tensor):
            inputs.append(spec(name, value, f"Input `{name}` of get_inputs()"))
        elif value is None or isinstance(value, int | float | bool | str):
            scalars.append({"name": name, "value": plain(name, value)})
        else:
            raise Refused(
                f"Argument `{name}` of get_inputs() is {kind_of(value)}.",
                "Pass tensors and plain values only; move other settings into get_init_inputs().",
                ("Tensor", *SCALARS),
            )
    return inputs, scalars


def plain(name: str, value: Any) -> Any:
    """Subclasses (enumerations, NumPy's float64) as the plain type, so that JSON holds the value itself.

    Raises:
        Refused: a value that JSON cannot hold.
    """
    if isinstance(value, float) and not math.isfinite(value):
        todo = "Make it a constant of the module, through get_init_inputs() or inside forward()."
        raise Refused(f"Argument `{name}` of get_inputs() is {value}.", todo)
    if isinstance(value, str) and not value.isascii():
        raise Refused(f"Argument `{name}` of get_inputs() is a string with other than ASCII characters.", "Use ASCII.")
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return None


def output_tensors(result: Any) -> list[tuple[str, Any]]:
    """The outputs with their names: `out`, `out0`, `out1`, …, or the fields of a named tuple.

    Raises:
        Refused: the result is neither a tensor nor a tuple or list of tensors.
    """
    import torch

    if isinstance(result, torch.Tensor):
        return [("out", result)]
    todo = "Return one tensor, or a tuple or list of tensors."
    if not isinstance(result, tuple | list) or not result:
        raise Refused(f"forward() returned {kind_of(result)}.", todo)
    items = cast("Sequence[Any]", result)
    for n, item in enumerate(items):
        if not isinstance(item, torch.Tensor):
            raise Refused(f"forward() returned a {type(items).__name__} whose element {n} is {kind_of(item)}.", todo)
    fields: Sequence[str] = getattr(items, "_fields", ())
    taken: set[str] = set()
    return [(unique(fields[n] if fields else f"out{n}", taken), item) for n, item in enumerate(items)]
