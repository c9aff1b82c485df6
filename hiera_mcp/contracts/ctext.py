"""Text that is safe inside C source: comments, literals, types. User-chosen strings enter C only through here."""

import math
import re

from hiera_mcp.model.contract import DType, Scalar, TensorSpec
from hiera_mcp.model.space import Target, is_cpu

_TYPES: dict[DType, str] = {
    "float64": "double",
    "float32": "float",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "int64": "int64_t",
    "int32": "int32_t",
    "int16": "int16_t",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "bool": "uint8_t",
}
_HALVES: tuple[DType, ...] = ("float16", "bfloat16")
_REMARKS: dict[DType, str] = {"bool": ", each 0 or 1"}


def ctype(dtype: DType, target: Target) -> str:
    """The C type of one element. Half types are bit patterns (uint16_t) on cpu, where C++ has no portable type."""
    return "uint16_t" if is_cpu(target) and dtype in _HALVES else _TYPES[dtype]


def comment(text: str) -> str:
    """`text` on one line, fit for a C comment: printable ASCII, no comment end, no line continuation, no trigraph."""
    ascii_text = text.replace("→", "->").replace("×", "x").encode("ascii", "replace").decode()
    line = "".join(c if c.isprintable() else " " for c in ascii_text)
    for bad, good in (("\\", "/"), ("*/", "* /"), ("/*", "/ *")):
        line = line.replace(bad, good)
    return re.sub(r"\?(?=\?)", "? ", line).rstrip("*")


def string_literal(text: str) -> str:
    """A C string literal whose bytes are the UTF-8 form of `text`."""
    data = text.encode("utf-8", "backslashreplace")
    return '"' + "".join(_char(b) for b in data) + '"'


def _char(byte: int) -> str:
    plain = 0x20 <= byte < 0x7F and byte not in b'"\\?'
    return chr(byte) if plain else f"\\{byte:03o}"


def integer_literal(value: int) -> str:
    """A constant expression; of type int when it fits, so that index arithmetic on a GPU stays in 32 bits."""
    if -(1 << 31) < value < (1 << 31):
        return str(value) if value >= 0 else f"({value})"
    if -(1 << 63) < value < (1 << 63):
        return f"INT64_C({value})" if value >= 0 else f"(-INT64_C({-value}))"
    return "(-INT64_C(9223372036854775807) - 1)" if value == -(1 << 63) else float_literal(_as_float(value))


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def float_literal(value: float) -> str:
    """A constant expression of type double, exact to the last bit; HUGE_VAL and NAN need math.h."""
    if math.isnan(value):
        return "((double)NAN)"
    if math.isinf(value):
        return "HUGE_VAL" if value > 0 else "(-HUGE_VAL)"
    return repr(value) if math.copysign(1.0, value) > 0 else f"({value!r})"


def scalar_literal(scalar: Scalar) -> str | None:
    """The constant expression of a scalar; None for None."""
    value = scalar.value
    if value is None:
        return None
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int):
        return integer_literal(value)
    return float_literal(value) if isinstance(value, float) else string_literal(value)


def shape_text(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(str(d) for d in shape) + "]"


def tensor_text(spec: TensorSpec) -> str:
    """`[16, 256] float32`, with what the type alone does not say."""
    return f"{shape_text(spec.shape)} {spec.dtype}{_REMARKS.get(spec.dtype, '')}"
