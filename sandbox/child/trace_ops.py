"""The recorder: sees each ATen operator of forward(), with what it reads, writes and draws.

Calls of one kind (the same operator on the same shapes) share one signature, whose cost is worked out once: a recurrent
network makes 80,000 calls of a dozen kinds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hiera_mcp.sandbox.child import random_draws
from hiera_mcp.sandbox.child.dispatch import dispatch_mode
from hiera_mcp.sandbox.child.trace_load import Undrawable
from hiera_mcp.sandbox.child.trace_signatures import Seen, signature, storage_key, tensors_of, unique_bytes

ALLOCATIONS = ("empty", "new_empty", "lift_fresh")
"""Operators that make memory and write nothing to it; their memory is looked through."""


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


@dataclass
class Record:
    """What forward() did."""

    operators: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """TracedOperator rows: one for each kind of call, views among them."""
    calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """TracedCall rows."""
    values: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """TracedValue rows."""
    touched: dict[str, dict[Any, int]] = field(default_factory=dict[str, dict[Any, int]])
    """Owner → distinct pieces read, each with its bytes."""
    written: list[str] = field(default_factory=list[str])
    """Owners that forward() wrote to."""
    random: list[str] = field(default_factory=list[str])
    """Operators that drew random numbers."""
    draws: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    """Random draws that were taken out as inputs: name and tensor."""
    captured: list[str] = field(default_factory=list[str])
    """Tensors that forward() read although they are neither argument nor state, as text."""
    allocated: int = 0
    """Bytes of fresh tensors."""


class Recorder:
    """Notes the calls of one forward(). `mode` is to be entered around it.

    Args:
        owners: what `storages` knows already: arguments and state, by owner.
        draw_dtype: take random draws out as inputs, floating-point ones in this type; None: only say that there are some.
    """

    def __init__(self, storages: Storages, owners: Sequence[tuple[str, Any]], draw_dtype: Any = None) -> None:
        self.record = Record()
        self.modules: list[int] = [0]
        """The running torch modules, as indices into Trace.modules; the innermost comes last."""
        self._storages = storages
        self._draw_dtype = draw_dtype
        self._signatures: dict[Any, int] = {}
        self._value_of: dict[int, int] = {}
        self._drawn: set[str] = set()
        for owner, tensor in owners:
            self._storages.add(tensor, owner)
            if storage_key(tensor) not in self._value_of:
                self._value_of[storage_key(tensor)] = self._new_value(tensor, owner)
        self.mode = dispatch_mode(self.call)

    def call(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Run one operator and note it."""
        if random_draws.is_random(func, args, kwargs):
            self.record.random.append(str(func._overloadpacket))
            if self._draw_dtype is not None:
                return self._draw(func, args, kwargs)
        given = tensors_of((args, kwargs))
        owners = [self._storages.owner(t) for t in given]
        out = func(*args, **kwargs)
        if func.namespace != "prim":
            self._note(func, args, kwargs, out, given, owners)
        return out

    def finish(self, outputs: Sequence[tuple[str, Any]]) -> None:
        """Name the values that forward() returned, and count views of inputs and state among them as read."""
        for name, tensor in outputs:
            number = self._value_of.get(storage_key(tensor))
            if number is not None and not self.record.values[number]["owner"]:
                self.record.values[number]["owner"] = f"outputs.{name}"
            self._touch(self._storages.owner(tensor), tensor, unique_bytes(tensor))

    def _draw(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """A random draw as a further input."""
        try:
            kind = random_draws.kind_of(func)
        except random_draws.NoDraw as e:
            todo = "Draw such numbers in get_inputs() and pass them as an argument, or in the constructor as a buffer."
            name = str(func._overloadpacket)
            raise Undrawable(f"In forward(), {e}: they cannot be given to a candidate.", todo, name) from e
        with random_draws.recording(self._draw_dtype) as draws:
            out = draws.take(lambda: func(*args, **kwargs), kind, args)
        drawn = draws.taken[0]
        whole = kind == "factory" or (kind == "fill" and _covers(args[0]))
        if whole and kind == "fill":
            self._write(args[0])
        self._own_draw((out if kind == "factory" else args[0]) if whole else drawn, drawn)
        if whole:
            return out
        with self.mode:  # what is done with the draw is work of the reference
            return args[0].copy_(drawn) if kind == "fill" else random_draws.dropped(args, drawn)

    def _own_draw(self, memory: Any, drawn: Any) -> None:
        """From now on `memory` holds the next draw."""
        name = f"draw{len(self.record.draws)}"
        owner = f"inputs.{name}"
        self.record.draws.append((name, drawn))
        self._storages.add(memory, owner)
        self._storages.names[storage_key(memory)] = owner
        self._drawn.add(owner)
        self._value_of[storage_key(memory)] = self._new_value(memory, owner)

    def _note(
        self, func: Any, args: Any, kwargs: Any, out: Any, given: list[Any], owners: Sequence[str | None]
    ) -> None:
        results = tensors_of(out)
        if not results and not given:
            return
        written = written_tensors(func, args, kwargs)
        mine = {storage_key(t) for t in given}
        fresh = [t for t in results if storage_key(t) not in mine]
        for t in fresh:
            self._storages.add(t, "")
            self.record.allocated += t.numel() * t.element_size()
        base = str(func._overloadpacket).rpartition(".")[2]
        seen = Seen(func, base, args, kwargs, given, written, results, fresh)
        number = self._signature(seen, out)
        if base.startswith(ALLOCATIONS):
            return
        self.record.operators[number]["count"] += 1
        if not self.record.operators[number]["is_view"]:
            self._launch(number, seen, owners)

    def _signature(self, seen: Seen, out: Any) -> int:
        key = seen.key()
        if key not in self._signatures:
            self._signatures[key] = len(self.record.operators)
            self.record.operators.append({**signature(seen, out), "count": 0})
        return self._signatures[key]

    def _launch(self, number: int, seen: Seen, owners: Sequence[str | None]) -> None:
        row = self.record.operators[number]
        rows = list(zip(seen.given, owners, strict=True))
        reads: list[int] = []
        for n in seen.read_places():
            tensor, owner = rows[n]
            if owner is None:
                self._capture(tensor)
            reads.append(self._value(tensor))
            self._touch(owner, tensor, row["piece_bytes"][n])
        for t in seen.written:
            self._write(t)
        writes = [self._renewed(t) for t in (*seen.written, *seen.fresh)]
        self.record.calls.append({"operator": number, "reads": reads, "writes": writes, "module": self.modules[-1]})

    def _write(self, tensor: Any) -> None:
        """Note a write to an input or to state. A draw is made anew in each call, so it may be written to."""
        if (owner := self._storages.owner(tensor)) and owner not in self._drawn:
            self.record.written.append(owner)

    def _capture(self, tensor: Any) -> None:
        self.record.captured.append(f"{list(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}")
        self._storages.add(tensor, "")

    def _value(self, tensor: Any) -> int:
        key = storage_key(tensor)
        if key not in self._value_of:
            self._value_of[key] = self._new_value(tensor, "")
        return self._value_of[key]

    def _renewed(self, tensor: Any) -> int:
        """The value that a write makes. Views of one base share its value."""
        number = self._new_value(tensor, "")
        self._value_of[storage_key(tensor)] = number
        return number

    def _new_value(self, tensor: Any, owner: str) -> int:
        self.record.values.append({"nbytes": tensor.numel() * tensor.element_size(), "owner": owner})
        return len(self.record.values) - 1

    def _touch(self, owner: str | None, tensor: Any, size: int) -> None:
        """Note that a piece of an input or of state was read."""
        if owner and size:
            piece = (tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
            self.record.touched.setdefault(owner, {})[piece] = size


def _covers(tensor: Any) -> bool:
    """Whether it is all of its memory."""
    return tensor.numel() * tensor.element_size() >= tensor.untyped_storage().nbytes()


def written_tensors(func: Any, args: Any, kwargs: Any) -> list[Any]:
    """Arguments that the operator writes to, by its schema."""
    found: list[Any] = []
    for n, parameter in enumerate(func._schema.arguments):
        if parameter.is_write:
            found += tensors_of(args[n] if n < len(args) else kwargs.get(parameter.name))
    if func._schema.name == "aten::native_batch_norm" and args[5]:  # its schema does not declare this write
        found += tensors_of(args[3:5])
    return found


def follow_modules(model: Any, recorder: Recorder) -> list[dict[str, str]]:
    """Let the recorder know which module runs; returns the TracedModule rows."""
    rows: list[dict[str, str]] = []
    for n, (path, module) in enumerate(model.named_modules()):
        rows.append({"path": path, "type": type(module).__name__})
        if n:
            module.register_forward_pre_hook(partial(_enter, recorder, n))
            module.register_forward_hook(partial(_leave, recorder), always_call=True)
    return rows


def _enter(recorder: Recorder, number: int, *_: Any) -> None:
    recorder.modules.append(number)


def _leave(recorder: Recorder, *_: Any) -> None:
    recorder.modules.pop()
