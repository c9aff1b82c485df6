"""One observed call of the reference: on fake tensors (shapes without data), or on real ones where fake ones fail."""

import contextlib
import warnings
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from hiera_mcp.sandbox.child import trace_load, trace_ops, trace_values
from hiera_mcp.sandbox.child.trace_load import Refused

Stage = Literal["fake", "fake_forward", "real"]
"""fake: nothing is allocated; fake_forward: the module is real, its inputs are not; real: everything is."""


@dataclass
class StateTensor:
    """A parameter, a buffer, or a tensor that a module keeps as a plain attribute."""

    path: str
    tensor: Any
    buffer: bool
    module_path: str
    module: Any


@dataclass
class Observation:
    """What one forward() showed."""

    stage: Stage
    names: list[str]
    args: list[Any]
    state: list[StateTensor]
    outputs: list[tuple[str, Any]]
    record: trace_ops.Record
    mode: Literal["train", "eval"]
    classes: list[str]
    """Type names of the submodules."""
    switched: tuple[str, ...] = ()
    """Random operators that were active in train mode, because of which the module was switched to eval mode."""


@dataclass
class Meter:
    """Bytes that an attempt allocated, or would have."""

    total: int = 0


def metered(meter: Meter) -> Any:
    """A TorchDispatchMode that adds up the memory of fresh tensors."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Metering(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            old = {trace_ops.storage_key(t) for t in trace_ops.tensors_of((args, kwargs))}
            fresh = [t for t in trace_ops.tensors_of(out) if trace_ops.storage_key(t) not in old]
            meter.total += sum(t.numel() * t.element_size() for t in fresh)
            return out

    return Metering()


def observe(path: Path, precision: str, limit_bytes: int) -> Observation:
    """Observe forward() with as little real data as the reference allows.

    Args:
        limit_bytes: real tensors are only made when the attempt on fake ones allocated less than this.

    Raises:
        Refused: the reference is at fault.
    """
    meter = Meter()
    try:
        return _attempt(path, precision, "fake", meter)
    except Refused as e:
        _may_go_on(e, meter, limit_bytes)
    try:
        return _attempt(path, precision, "fake_forward", meter)
    except Refused as e:
        _may_go_on(e, meter, 2 * limit_bytes)
    return _attempt(path, precision, "real", Meter())


def _may_go_on(refused: Refused, meter: Meter, limit_bytes: int) -> None:
    """Return when the fake tensors may be what raised, and real ones are small enough to try."""
    if not refused.raised:
        raise refused
    if meter.total > limit_bytes:
        size = f"more than {limit_bytes / 1e9:.3g} GB"
        todo = f"{refused.todo} It was traced without data, because it allocates {size}: smaller shapes show more."
        raise Refused(refused.what, todo, raised=True) from refused


def _attempt(path: Path, precision: str, stage: Stage, meter: Meter) -> Observation:
    first = _observe_once(path, precision, stage, meter, evaluate=False)
    if not (first.record.random and first.mode == "train"):
        return _refuse_random(first)
    second = _refuse_random(_observe_once(path, precision, stage, meter, evaluate=True))
    return replace(second, switched=tuple(first.record.random))


def _refuse_random(seen: Observation) -> Observation:
    if seen.record.random:
        drawn = ", ".join(sorted(set(seen.record.random)))
        raise Refused(
            f"forward() draws random numbers ({drawn}), in eval mode too: no candidate can reproduce its output.",
            "Draw them in get_inputs() and pass them as an argument, or in the constructor as a buffer.",
        )
    return seen


def _observe_once(path: Path, precision: str, stage: Stage, meter: Meter, evaluate: bool) -> Observation:
    import torch

    fake = _fake_mode()
    trace_values.seed(0)
    with torch.no_grad(), _plain_kernels():
        with fake if stage == "fake" else contextlib.nullcontext(), metered(meter):
            module = trace_load.load(path)
            model = build_model(module, precision, evaluate)
        if stage == "fake_forward":
            _convert(model, fake.from_tensor)
        with fake if stage != "real" else contextlib.nullcontext(), metered(meter):
            args = [trace_values.cast_to(a, precision) for a in trace_load.arguments(module, "get_inputs")]
            names = trace_values.forward_names(model, len(args))
            trace_values.split_arguments(names, args)
            return _forward(stage, model, names, args)


def _fake_mode() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(allow_non_fake_inputs=True)


@contextlib.contextmanager
def _plain_kernels() -> Generator[None]:
    """Without oneDNN and fused transformer paths: they hide the operators of recurrent and attention layers."""
    import torch

    warnings.filterwarnings("ignore", "TF32 acceleration on top of oneDNN")  # setting the flags warns of our own doing
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.backends.mkldnn.flags(enabled=False, deterministic=False, allow_tf32=False):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def build_model(module: Any, precision: str, evaluate: bool) -> Any:
    """`Model(*get_init_inputs())` in the contract's precision. It stays in the mode it was constructed in.

    Raises:
        Refused: a part is missing, or the constructor raises.
    """
    import torch

    cls = trace_load.model_class(module)
    init = [trace_values.cast_to(a, precision) for a in trace_load.arguments(module, "get_init_inputs")]
    trace_load.check_signature(cls, init)
    model = trace_load.call("Model(*get_init_inputs())", cls, *init)
    _refuse_lazy(model)
    dtype = getattr(torch, precision)
    _convert(model, lambda t: t.to(dtype) if t.is_floating_point() else t)
    return model.eval() if evaluate else model


def _convert(model: Any, change: Callable[[Any], Any]) -> None:
    """Replace parameters, buffers and tensors that are plain attributes; `Module.to` refuses fake tensors.

    A tensor that two modules share stays shared.
    """
    import torch

    done: dict[int, Any] = {}
    for module in model.modules():
        own: dict[str, Any] = {**module._parameters, **module._buffers, **vars(module)}
        for name, value in own.items():
            if not isinstance(value, torch.Tensor):
                continue
            if id(value) not in done:
                new = change(value)
                plain = isinstance(new, torch.nn.Parameter) or not isinstance(value, torch.nn.Parameter)
                done[id(value)] = new if plain else torch.nn.Parameter(new, value.requires_grad)
            setattr(module, name, done[id(value)])


def _refuse_lazy(model: Any) -> None:
    from torch.nn.parameter import is_lazy

    for path, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if is_lazy(tensor):
            todo = "Use the module's plain form (Linear instead of LazyLinear) and give it its sizes."
            raise Refused(f"Parameter `{path}` has no shape before the first call: its module is lazy.", todo)


def _forward(stage: Stage, model: Any, names: list[str], args: list[Any]) -> Observation:
    import torch

    state = state_of(model)
    storages = trace_ops.Storages()
    for name, value in zip(names, args, strict=True):
        if isinstance(value, torch.Tensor):
            storages.add(value, f"inputs.{name}")
    for item in state:
        storages.add(item.tensor, f"state.{item.path}")
    training = any(m.training for m in model.modules())
    mode, record = trace_ops.recorder(storages)
    with mode:
        result = trace_load.call("forward()", model, *args, todo="Make forward() accept what get_inputs() returns.")
    outputs = trace_values.output_tensors(result)
    for _, tensor in outputs:
        if tensor.layout is torch.strided:
            trace_ops.touch(record, storages.owner(tensor), tensor)
    classes = [type(m).__name__ for m in model.modules()]
    return Observation(stage, names, args, state, outputs, record, "train" if training else "eval", classes)


def state_of(model: Any) -> list[StateTensor]:
    """Parameters, then buffers, then tensors that are plain attributes; each once, under its first path.

    Each is reached from the model by the attribute names of its path.
    """
    owners = dict(model.named_modules())
    found = [(p, t, False) for p, t in model.named_parameters()]
    found += [(p, t, True) for p, t in model.named_buffers()]
    taken = {id(t) for _, t, _ in found}
    for path, tensor in _attributes(owners):
        if id(tensor) not in taken:
            taken.add(id(tensor))
            found.append((path, tensor, True))
    return [_state_tensor(path, tensor, buffer, owners) for path, tensor, buffer in found]


def _attributes(owners: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    import torch

    for prefix, module in owners.items():
        for name, value in cast("dict[str, Any]", vars(module)).items():
            if isinstance(value, torch.Tensor):
                yield f"{prefix}.{name}".lstrip("."), value


def _state_tensor(path: str, tensor: Any, buffer: bool, owners: dict[str, Any]) -> StateTensor:
    module_path = path.rpartition(".")[0]
    return StateTensor(path, tensor, buffer, module_path, owners.get(module_path, owners[""]))
