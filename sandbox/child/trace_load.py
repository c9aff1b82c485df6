"""The reference as a module: load it, check that it has KernelBench's parts, call them, and say what to change.

Everything here runs the user's code; whatever it raises becomes a `Refused` that names the line.
"""

import ast
import contextlib
import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

MODULE = "hiera_reference"


class Refused(Exception):
    """The reference cannot become a contract. Same three parts as a HieraError of kind `task`."""

    def __init__(self, what: str, todo: str, valid: Sequence[str] = (), raised: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.todo = todo
        self.valid = tuple(valid)
        self.raised = raised
        """Whether the reference's own code raised; under fake tensors that may be their fault."""

    def as_dict(self) -> dict[str, Any]:
        return {"kind": "task", "what": self.what, "todo": self.todo, "valid": list(self.valid)}


class Undrawable(Refused):
    """forward() draws random numbers that cannot become an input. In eval mode it may not draw them."""

    def __init__(self, what: str, todo: str, operator: str) -> None:
        super().__init__(what, todo)
        self.operator = operator


def load(path: Path) -> ModuleType:
    """Run the reference file as a module.

    Raises:
        Refused: it is not Python, imports what is not there, or raises.
    """
    source = path.read_text(encoding="utf-8")
    try:
        compile(source, path.name, "exec")
    except (SyntaxError, ValueError) as e:
        line = f"line {e.lineno}: {e.msg}" if isinstance(e, SyntaxError) else str(e)
        raise Refused(f"The reference is not valid Python: {line}.", "Correct the syntax.") from e
    spec = importlib.util.spec_from_file_location(MODULE, path)
    if spec is None or spec.loader is None:
        raise Refused("The reference cannot be loaded as a Python module.", "Give it as the text of one Python file.")
    _preload(source)
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    call("Loading the reference", spec.loader.exec_module, module)
    return module


def _preload(source: str) -> None:
    """Import what the reference imports, outside any tensor mode: a module imported under fake tensors keeps them."""
    from torch.utils._python_dispatch import _disable_current_modes  # pyright: ignore[reportPrivateUsage]

    names = [a.name for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Import) for a in n.names]
    names += [n.module for n in ast.walk(ast.parse(source)) if isinstance(n, ast.ImportFrom) and n.module]
    with _disable_current_modes():
        for name in names:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def call(doing: str, function: Callable[..., Any], *args: Any, todo: str = "") -> Any:
    """Call a part of the reference; what it raises becomes a `Refused` that starts with `doing`."""
    try:
        return function(*args)
    except Refused:
        raise
    except ImportError as e:
        raise _import_refused(doing, e) from e
    except MemoryError as e:
        raise Refused(f"{doing} needs more memory than the tracer has.", "Reduce the sizes of its tensors.") from e
    except (Exception, SystemExit) as e:
        raise Refused(f"{doing} raised {describe(e)}.", _advice(e, todo), raised=True) from e


def _advice(error: BaseException, todo: str) -> str:
    if "cuda" in str(error).lower():
        return "Keep the reference on the CPU, without .cuda() and device='cuda'; the judge moves it to the GPU."
    if isinstance(error, TypeError) and todo:
        return todo
    return "Correct the reference so that Model(*get_init_inputs())(*get_inputs()) runs by itself on the CPU."


def _import_refused(doing: str, error: ImportError) -> Refused:
    todo = "Write the reference with torch and the standard library alone, or install that module beside torch."
    if isinstance(error, ModuleNotFoundError) and error.name:
        return Refused(f"{doing} failed: there is no module `{error.name}` to import{_where(error)}.", todo)
    text = re.sub(r" \([^()]*\)$", "", str(error))  # without the path of the host
    return Refused(f"{doing} failed: {text}{_where(error)}.", f"Correct the import. {todo}")


def describe(error: BaseException) -> str:
    """`ValueError at line 12: message`, on one line, cut when long."""
    text = " ".join(str(error).split())
    text = text if len(text) <= 400 else text[:400] + " …"
    return f"{type(error).__name__}{_where(error)}" + (f": {text}" if text else "")


def _where(error: BaseException) -> str:
    """The innermost line of the reference itself in the traceback."""
    own = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).name == f"{MODULE}.py"]
    return f" at line {own[-1]}" if own and own[-1] else ""


def model_class(module: ModuleType) -> type[Any]:
    """The class `Model`.

    Raises:
        Refused: there is none, or it is not a torch.nn.Module; lists the modules found.
    """
    import torch

    found: list[str] = []
    for name, value in vars(module).items():
        if inspect.isclass(value) and value.__module__ == MODULE:
            found.append(name)
    model = getattr(module, "Model", None)
    todo = "Name the module to optimise `Model`; it has to be a subclass of torch.nn.Module."
    if model is None:
        listed = f" Classes found: {', '.join(found)}." if found else ""
        raise Refused(f"The reference defines no class `Model`.{listed}", todo)
    if not (inspect.isclass(model) and issubclass(model, torch.nn.Module)):
        raise Refused("`Model` is not a subclass of torch.nn.Module.", todo)
    return model


def arguments(module: ModuleType, function: str) -> list[Any]:
    """What `get_inputs()` or `get_init_inputs()` returns.

    Raises:
        Refused: the function is missing, needs arguments, raises, or returns something else than a list.
    """
    purpose = "forward()" if function == "get_inputs" else "Model()"
    get = getattr(module, function, None)
    if not callable(get):
        todo = f"Define `def {function}():` that returns the list of the arguments of {purpose}."
        raise Refused(f"The reference defines no function `{function}`.", todo)
    values = call(f"{function}()", get)
    if not isinstance(values, list | tuple):
        todo = f"Return a list with the arguments of {purpose}, `[x]` for a single one."
        raise Refused(f"{function}() returned {kind_of(values)}, not a list.", todo)
    return list(cast("Sequence[Any]", values))


def cases(module: ModuleType) -> list[tuple[str, list[Any]]]:
    """Cases with their forward arguments: those of get_cases(), else the one of get_inputs().

    Raises:
        Refused: get_cases() returns something else than a dict of lists.
    """
    if not callable(getattr(module, "get_cases", None)):
        return [("default", arguments(module, "get_inputs"))]
    given = call("get_cases()", vars(module)["get_cases"])
    todo = "Return a dict: the name of each case → the list of the arguments of forward()."
    if not isinstance(given, dict) or not given:
        raise Refused(f"get_cases() returned {'an empty dict' if given == {} else kind_of(given)}.", todo)
    named = cast("dict[Any, Any]", given)
    for name, values in named.items():
        if not (isinstance(name, str) and name.isascii() and name.isidentifier()):
            raise Refused(f"get_cases() has a case named {name!r}.", "Name each case with letters, digits and `_`.")
        if not isinstance(values, list | tuple):
            raise Refused(f"Case `{name}` of get_cases() is {kind_of(values)}, not a list.", todo)
    return [(name, list(values)) for name, values in named.items()]


def kind_of(value: Any) -> str:
    """`a Tensor`, `an int`, `None`: for messages."""
    import torch

    if value is None:
        return "None"
    name = "Tensor" if isinstance(value, torch.Tensor) else type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def check_signature(model: type[Any], init_args: list[Any]) -> None:
    """Compare the constructor's signature with the arguments, so that the message can name both."""
    try:
        signature = inspect.signature(model)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*init_args)
    except TypeError as e:
        raise Refused(
            f"Model{signature} cannot be called with the {len(init_args)} values of get_init_inputs(): {e}.",
            "Make get_init_inputs() return the constructor's arguments, in order.",
        ) from e
