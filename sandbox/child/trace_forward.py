"""One observed call of the reference: on fake tensors (shapes without data), or on real ones where fake ones fail."""

import contextlib
import warnings
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from hiera_mcp.sandbox.child import lazy_dynamo, trace_cases, trace_load, trace_ops, trace_values
from hiera_mcp.sandbox.child.dispatch import dispatch_mode
from hiera_mcp.sandbox.child.trace_load import Refused, Undrawable
from hiera_mcp.sandbox.child.trace_signatures import storage_key, tensors_of
from hiera_mcp.sandbox.child.trace_state import StateTensor, state_of

Stage = Literal["fake", "fake_forward", "real"]
"""fake: nothing is allocated; fake_forward: the module is real, its inputs are not; real: everything is."""


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
    modules: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """TracedModule rows."""
    case: str = "default"
    further: list["Observation"] = field(default_factory=list["Observation"])
    """The other cases."""


@dataclass
class Meter:
    """Bytes that an attempt allocated, or would have."""

    total: int = 0


def metered(meter: Meter) -> Any:
    """A context manager that adds up the memory of fresh tensors."""

    def measured(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        out = func(*args, **kwargs)
        old = {storage_key(t) for t in tensors_of((args, kwargs))}
        fresh = [t for t in tensors_of(out) if storage_key(t) not in old]
        meter.total += sum(t.numel() * t.element_size() for t in fresh)
        return out

    return dispatch_mode(measured)


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
    """In the mode it is constructed in; in eval mode when that draws fewer random numbers (dropout). What it still draws
    become inputs."""
    try:
        first = _observe_once(path, precision, stage, meter, evaluate=False)
    except Undrawable as e:
        return replace(_observe_once(path, precision, stage, meter, evaluate=True), switched=(e.operator,))
    if first.mode == "eval" or not first.record.random:
        return first
    second = _observe_once(path, precision, stage, meter, evaluate=True)
    silenced = Counter(first.record.random) - Counter(second.record.random)
    return replace(second, switched=tuple(sorted(silenced))) if silenced else first


def _observe_once(path: Path, precision: str, stage: Stage, meter: Meter, evaluate: bool) -> Observation:
    """One forward() for each case."""
    import torch

    fake = lazy_dynamo.fake_mode()
    trace_values.seed(0)
    with torch.no_grad(), _plain_kernels():
        with fake if stage == "fake" else contextlib.nullcontext(), metered(meter):
            module = trace_load.load(path)
            model = build_model(module, precision, evaluate)
        if stage == "fake_forward":
            _convert(model, fake.from_tensor)
        with fake if stage != "real" else contextlib.nullcontext():
            with metered(meter):
                cases = trace_load.cases(module)
            seen = [_observe_case(stage, model, name, args, precision, meter) for name, args in cases]
    for other in seen[1:]:
        trace_cases.check_alike(seen[0], other)
    return replace(seen[0], further=seen[1:])


def _observe_case(stage: Stage, model: Any, case: str, drawn: list[Any], precision: str, meter: Meter) -> Observation:
    import torch

    args = [trace_values.cast_to(a, precision) for a in drawn]
    names = trace_values.forward_names(model, len(args))
    trace_values.split_arguments(names, args)
    return replace(_forward(stage, model, names, args, meter, getattr(torch, precision)), case=case)


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
    # detach: views of a fake tensor that was deep-copied lie in other memory than itself, those of its alias do not
    _convert(model, lambda t: t.detach().to(dtype) if t.is_floating_point() else t.detach())
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


def _forward(stage: Stage, model: Any, names: list[str], args: list[Any], meter: Meter, draw_dtype: Any) -> Observation:
    import torch

    state = state_of(model)
    owners = [(f"inputs.{n}", a) for n, a in zip(names, args, strict=True) if isinstance(a, torch.Tensor)]
    owners += [(f"state.{s.path}", s.tensor) for s in state]
    training = any(m.training for m in model.modules())
    recorder = trace_ops.Recorder(trace_ops.Storages(), owners, draw_dtype)
    modules = trace_ops.follow_modules(model, recorder)
    try:
        with recorder.mode:
            result = trace_load.call("forward()", model, *args, todo="Make forward() accept what get_inputs() returns.")
    finally:
        meter.total += recorder.record.allocated
    outputs = trace_values.output_tensors(result)
    recorder.finish([(n, t) for n, t in outputs if t.layout is torch.strided])
    classes = [type(m).__name__ for m in model.modules()]
    mode = "train" if training else "eval"
    return Observation(stage, names, args, state, outputs, recorder.record, mode, classes, modules=modules)
