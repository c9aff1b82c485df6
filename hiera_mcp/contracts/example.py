"""Example inputs as text: `x: float32[64, 96], index: int64[64] < 96, alpha: 0.5`, with `name = ` before it for a named case."""

import ast
import re
from typing import get_args

from hiera_mcp.errors import RequestError
from hiera_mcp.model.base import Model
from hiera_mcp.model.contract import DType

NOTATION = (
    "Write `NAME: DTYPE[SHAPE]` for a tensor (`float32[]` has no dimensions; `int64[64] < 96` holds values from 0 to 95, "
    "without a bound 0 and 1) and `NAME: VALUE` for a number, True, False, None or a string, with commas between them."
)
DEFAULT_CASE = "default"
_NAMED = re.compile(r"^\s*([A-Za-z_]\w*)\s*=(?!=)")
_NO_DIMENSIONS = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\[\s*\]""")

Plain = int | float | bool | str | None


class Drawn(Model):
    """A tensor to draw: normal for floating point, 0 or 1 for bool, from 0 to `below` - 1 for integers."""

    dtype: DType
    shape: tuple[int, ...]
    below: int = 2

    def text(self) -> str:
        """In the notation."""
        bound = f" < {self.below}" if self.below != 2 else ""
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]{bound}"


class Example(Model):
    """One case: argument → tensor to draw, or value."""

    name: str
    """`default` when the text gives none."""
    values: dict[str, Drawn | Plain]


def parse_example(text: str) -> Example:
    """The case that a text describes.

    Raises:
        RequestError: it does not follow the notation; says where.
    """
    named = _NAMED.match(text)
    body = text[named.end() :] if named else text
    values: dict[str, Drawn | Plain] = {}
    for key, value in _pairs(body):
        if key in values:
            raise _refused(f"`{key}` is given twice")
        values[key] = _drawn(value) if isinstance(value, ast.Subscript | ast.Compare) else _plain(key, value)
    return Example(name=named[1] if named else DEFAULT_CASE, values=values)


def render_example(example: Example) -> str:
    """The text that parses to it."""
    rows = [f"{k}: {v.text() if isinstance(v, Drawn) else repr(v)}" for k, v in example.values.items()]
    return f"{example.name} = " + ", ".join(rows)


def _pairs(body: str) -> list[tuple[str, ast.expr]]:
    """Name and expression of each entry: between braces it is a display of a Python dictionary."""
    text = _NO_DIMENSIONS.sub(lambda m: m[1] or "[()]", body)
    try:
        parsed = ast.parse(f"{{{text.strip()}\n}}", mode="eval").body
    except (SyntaxError, ValueError) as error:
        why = error.msg if isinstance(error, SyntaxError) else str(error)
        raise _refused(f"`{body.strip()}` cannot be read ({why})") from error
    if not isinstance(parsed, ast.Dict) or not parsed.keys:
        raise _refused(f"`{body.strip()}` names no argument")
    return [(_name(k), v) for k, v in zip(parsed.keys, parsed.values, strict=True)]


def _name(key: ast.expr | None) -> str:
    if not isinstance(key, ast.Name):
        raise _refused(f"`{ast.unparse(key) if key else '**'}` is no argument's name")
    return key.id


def _drawn(value: ast.Subscript | ast.Compare) -> Drawn:
    below = 2
    tensor: ast.expr = value
    if isinstance(value, ast.Compare):
        bound = value.comparators[0]
        tensor = value.left
        if len(value.ops) != 1 or not isinstance(value.ops[0], ast.Lt) or (below := _whole(bound)) < 1:
            raise _refused(f"`{ast.unparse(value)}` has no bound of the form `< 96`")
    if not isinstance(tensor, ast.Subscript) or not isinstance(tensor.value, ast.Name):
        raise _refused(f"`{ast.unparse(value)}` is no tensor")
    if tensor.value.id not in get_args(DType):
        raise RequestError(f"`{tensor.value.id}` is no type of a tensor.", valid=get_args(DType))
    sizes = tensor.slice.elts if isinstance(tensor.slice, ast.Tuple) else [tensor.slice]
    if isinstance(value, ast.Compare) and "int" not in tensor.value.id:
        raise _refused(f"`{ast.unparse(value)}`: a bound is for integers")
    return Drawn.model_validate({"dtype": tensor.value.id, "shape": tuple(map(_whole, sizes)), "below": below})


def _whole(size: ast.expr) -> int:
    if not isinstance(size, ast.Constant) or type(size.value) is not int:
        raise _refused(f"`{ast.unparse(size)}` is no whole number from 0")
    return size.value


def _plain(key: str, value: ast.expr) -> Plain:
    try:
        plain = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise _refused(f"`{key}: {ast.unparse(value)}` is neither a tensor nor a value") from error
    if not isinstance(plain, Plain):
        raise _refused(f"`{key}: {ast.unparse(value)}` is a {type(plain).__name__}")
    return plain


def _refused(what: str) -> RequestError:
    return RequestError(f"Example inputs: {what}.", todo=NOTATION)
