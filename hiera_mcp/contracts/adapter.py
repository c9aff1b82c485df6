"""A plain function as a task: a `Model` that calls it, and its example inputs, are added to the text of its file. Pure."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from hiera_mcp.contracts.example import NOTATION, Drawn, Example, Plain, parse_example
from hiera_mcp.errors import RequestError, TaskError


@dataclass(frozen=True)
class _Argument:
    """One argument of the function."""

    name: str
    default: str | None
    """Its text."""
    keyword: bool
    """Whether it may be passed by keyword."""

    @property
    def constants(self) -> tuple[Plain, ...]:
        """Its default, when that can become a constant of the contract."""
        try:
            value = ast.literal_eval(self.default or "()")
        except (ValueError, TypeError, SyntaxError):
            return ()
        return (value,) if isinstance(value, Plain) else ()


def adapt(source: str, function: str, inputs: Sequence[str] = ()) -> str:
    """The text of a reference in KernelBench format whose forward() calls `function` under its own argument names.

    Args:
        inputs: one text per case, see `example.py`; none where the file has get_inputs() or get_cases().

    Raises:
        RequestError: there is no such function, or the inputs do not fit it; shows them with its own argument names.
        TaskError: the file is not Python, or has a `Model` of its own.
    """
    tree = _parsed(source)
    arguments = _arguments(_definition(tree, function))
    examples = [parse_example(text) for text in inputs]
    if examples:
        rows = [_bound(function, arguments, example) for example in examples]
        names = [a for a in arguments if any(a.name in row for row in rows)]
        model = _model(names, with_defaults=False)
        own = _given(function, arguments, examples, rows, [a.name for a in names])
    else:
        model = _model(arguments, with_defaults=True)
        own = _of_the_file(tree, function, arguments)
    return "\n\n\n".join([source.rstrip(), _HEAD.format(function=function), model, *own, _NO_INIT])


_HEAD = """# Added by hiera_mcp: {function}() in KernelBench format.
import torch as _hiera_torch

_hiera_function = {function}"""
_NO_INIT = "def get_init_inputs():\n    return []\n"


def _parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError) as error:
        where = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else str(error)
        raise TaskError(f"The reference is not valid Python: {where}.", todo="Correct the syntax.") from error


def _definition(tree: ast.Module, function: str) -> ast.FunctionDef:
    if "Model" in _names(tree):
        todo = "Leave the function's name out to build a contract of that class, or give the class another name."
        raise TaskError("The file has a `Model` already.", todo=todo)
    found = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    if function not in found:
        raise RequestError(f"The file has no function `{function}` at its top level.", valid=sorted(found))
    return found[function]


def _names(tree: ast.Module) -> set[str]:
    return {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}


def _arguments(definition: ast.FunctionDef) -> list[_Argument]:
    """In the order of the signature; `*args` and `**kwargs` get nothing."""
    args = definition.args
    plain = [*args.posonlyargs, *args.args]
    missing = [None] * (len(plain) - len(args.defaults))
    rows = [*zip(plain, [*missing, *args.defaults], strict=True), *zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    return [_Argument(a.arg, ast.unparse(d) if d else None, a not in args.posonlyargs) for a, d in rows]


def _model(arguments: Sequence[_Argument], with_defaults: bool) -> str:
    required = [n for n, a in enumerate(arguments) if a.default is None or not with_defaults]
    last = max(required, default=-1)  # Python wants no required argument behind one with a default
    signature = [a.name if n <= last else f"{a.name}={a.default}" for n, a in enumerate(arguments)]
    return (
        "class Model(_hiera_torch.nn.Module):\n"
        f"    def forward({', '.join(['self', *signature])}):\n"
        f"        return _hiera_function({_call(arguments)})"
    )


def _call(arguments: Sequence[_Argument]) -> str:
    """By keyword wherever the function allows it: arguments that are left to their defaults may lie in between."""
    return ", ".join(f"{a.name}={a.name}" if a.keyword else a.name for a in arguments)


def _bound(function: str, arguments: Sequence[_Argument], example: Example) -> dict[str, Drawn | Plain]:
    """Argument → value of one case, with the defaults that can be constants of the contract."""
    unknown = [name for name in example.values if name not in {a.name for a in arguments}]
    if unknown:
        raise RequestError(f"{function}() has no argument `{unknown[0]}`.", valid=[a.name for a in arguments])
    lacking = [a.name for a in arguments if a.default is None and a.name not in example.values]
    if lacking:
        what = f"Example inputs of {function}(): there is none for {', '.join(lacking)}."
        raise RequestError(what, todo=_advice(arguments))
    given = {a.name: a.constants[0] for a in arguments if a.constants} | example.values
    return {a.name: given[a.name] for a in arguments if a.name in given}


def _advice(arguments: Sequence[_Argument]) -> str:
    shown = [f"{a.name}: {a.default if a.constants else 'float32[64, 64]'}" for a in arguments]
    return f'Give them like this: --inputs "{", ".join(shown)}" (inputs of the tool). {NOTATION}'


def _given(
    function: str,
    arguments: Sequence[_Argument],
    examples: Sequence[Example],
    rows: Sequence[dict[str, Drawn | Plain]],
    names: Sequence[str],
) -> list[str]:
    """get_inputs() and, of several cases, get_cases()."""
    for example, row in zip(examples, rows, strict=True):
        lacking = [name for name in names if name not in row]
        if lacking:
            what = f"Case `{example.name}` of {function}() gives no {', '.join(lacking)}, and other cases do."
            raise RequestError(what, todo=_advice(arguments))
    if len({e.name for e in examples}) < len(examples):
        todo = "Put a name before each: `small = x: …`, `large = x: …`."
        raise RequestError("Two cases have the same name.", todo=todo)
    lists = [f"[{', '.join(_draw(row[name]) for name in names)}]" for row in rows]
    first = f"def get_inputs():\n    return {lists[0]}"
    if len(rows) == 1 and examples[0].name == "default":
        return [first]
    entries = "".join(f"        {e.name!r}: {text},\n" for e, text in zip(examples, lists, strict=True))
    return [first, f"def get_cases():\n    return {{\n{entries}    }}"]


def _draw(value: Drawn | Plain) -> str:
    """The expression that draws a tensor, or a value."""
    if not isinstance(value, Drawn):
        return repr(value)
    shape = f"({', '.join(map(str, value.shape))}{',' if len(value.shape) == 1 else ''})"
    dtype = f"dtype=_hiera_torch.{value.dtype}"
    if "float" in value.dtype:
        return f"_hiera_torch.randn({shape}, {dtype})"
    return f"_hiera_torch.randint({value.below}, {shape}, {dtype})"


def _of_the_file(tree: ast.Module, function: str, arguments: Sequence[_Argument]) -> list[str]:
    names = _names(tree)
    if "get_inputs" in names:
        return []
    if "get_cases" in names:
        return ["def get_inputs():\n    return list(next(iter(get_cases().values())))"]
    what = f"Example inputs of {function}() are missing: the file has neither get_inputs() nor get_cases()."
    raise RequestError(what, todo=_advice(arguments))
