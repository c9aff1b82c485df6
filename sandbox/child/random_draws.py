"""Random numbers that a reference draws in forward(): taken out as tensors, and put in again.

A contract makes each draw an input (`Case.draws`), so that reference, oracle and candidate work on the same numbers:

    with recording(dtype) as draws: model(x)       # draws.taken: one tensor per draw, in the order of drawing
    with replaying(draws.taken) as draws: model(x) # the same call on given draws; draws.check() afterwards

Only what depends on no value of a tensor can be taken out: factories (`randn`, `rand`, `randint`, `randperm`, `…_like`),
in-place fills (`normal_`, `bernoulli_`, …), and dropout, whose draw is its mask of zeros and ones.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from hiera_mcp.sandbox.child.dispatch import dispatch_mode

DROPOUT = "native_dropout"


class NoDraw(RuntimeError):
    """A random operator whose result depends on the values of its arguments: it cannot become an input."""


class OtherDraws(RuntimeError):
    """forward() draws other random numbers than those that it is given."""


def is_random(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether this call draws random numbers. Attention and dropout carry the tag even when they are told not to."""
    import torch

    if torch.Tag.nondeterministic_seeded not in func.tags:
        return False
    given = dict(zip((a.name for a in func._schema.arguments), args, strict=False)) | kwargs
    defaults = {a.name: a.default_value for a in func._schema.arguments}
    return all((defaults | given)[name] for name in ("dropout_p", "dropout", "train", "training") if name in defaults)


def kind_of(func: Any) -> str:
    """`factory`, `fill` or `dropout`.

    Raises:
        NoDraw: the operator is of no such kind.
    """
    name = str(func._overloadpacket).rpartition(".")[2]
    tensors = [a.name for a in func._schema.arguments if "Tensor" in str(a.type)]
    if name == DROPOUT:
        return "dropout"
    if not tensors or name.endswith("_like"):
        return "factory"
    if tensors == ["self"] and func._schema.arguments[0].is_write:
        return "fill"
    raise NoDraw(f"{func._overloadpacket} draws numbers that depend on the values of its arguments")


class _Draws:
    """What was drawn, or is to be given."""

    def __init__(self, taken: list[Any], dtype: Any) -> None:
        self.taken = taken
        self.used = 0
        self._dtype = dtype

    def check(self) -> None:
        """Raises OtherDraws when some given tensor was not asked for."""
        if self.used != len(self.taken):
            raise OtherDraws(f"forward() made {self.used} random draws instead of {len(self.taken)}")

    def take(self, call: Any, kind: str, args: Sequence[Any]) -> Any:
        """Make the draw, keep it, and give the operator's result."""
        if kind == "fill":
            result = call()
            self.taken.append(result.clone())
        elif kind == "factory":
            result = _cast(call(), self._dtype)
            self.taken.append(result.clone())
        else:
            mask = call()[1]
            self.taken.append(mask.to(args[0].dtype))
            result = dropped(args, self.taken[-1])
        self.used += 1
        return result

    def give(self, call: Any, kind: str, args: Sequence[Any]) -> Any:
        """The operator's result from the next given tensor."""
        if self.used == len(self.taken):
            raise OtherDraws(f"forward() makes more than {len(self.taken)} random draws")
        value = self.taken[self.used]
        self.used += 1
        if kind == "fill":
            return args[0].copy_(_fitting(value, args[0]))
        if kind == "dropout":
            return dropped(args, _fitting(value, args[0]))
        return _fitting(value, call())


@contextmanager
def recording(dtype: Any) -> Generator[_Draws]:
    """In it random operators draw; floating-point results of factories get `dtype`."""
    draws = _Draws([], dtype)
    with _mode(draws.take):
        yield draws


@contextmanager
def replaying(values: Sequence[Any]) -> Generator[_Draws]:
    """In it random operators give `values`, in this order."""
    draws = _Draws(list(values), None)
    with _mode(draws.give):
        yield draws


def _mode(handle: Callable[[Any, str, Any], Any]) -> Any:
    def drawn(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if not is_random(func, args, kwargs):
            return func(*args, **kwargs)
        return handle(lambda: func(*args, **kwargs), kind_of(func), args)

    return dispatch_mode(drawn)


def _cast(value: Any, dtype: Any) -> Any:
    return value.to(dtype) if value.is_floating_point() else value


def _fitting(value: Any, place: Any) -> Any:
    """`value` on the device and in the shape of what the operator would have made. Its type is its own (the float64 oracle
    is given float64 draws)."""
    if value.shape != place.shape:
        raise OtherDraws(f"forward() draws {list(place.shape)} where {list(value.shape)} is given")
    return value.to(place.device)


def dropped(args: Sequence[Any], mask: Any) -> tuple[Any, Any]:
    """What native_dropout(input, p, train) returns for a mask of zeros and ones."""
    x, p = args[0], float(args[1])
    return x * mask.to(x.dtype) / (1.0 - p if p < 1.0 else 1.0), mask != 0
