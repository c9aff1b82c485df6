"""The reference of a contract: its module, its model with drawn parameters, its outputs and its float64 oracle."""

import copy
import functools
import hashlib
import json
import linecache
import sys
import types
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from hiera_mcp.sandbox.child.draws import OWN, distort, resample, secret_seed, seeded, vary
from hiera_mcp.sandbox.child.random_draws import recording, replaying
from hiera_mcp.sandbox.child.state import Snapshot, memory_of, moved, reach, registered
from hiera_mcp.sandbox.child.values import arranger, as_list

FILE = "groundtruth.py"
Timer = Callable[[Callable[[], Any]], tuple[Any, float]]
"""Calls something, and gives its result and its seconds."""
EVAL_NOTE = "mode: eval"
"""A contract's note that puts the reference into eval mode; without it, it stays as constructed (KernelBench)."""


class ReferenceFailed(Exception):
    """The reference itself raised or does not fit its contract; nothing can be said about a candidate."""


class Unverifiable(ReferenceFailed):
    """The reference works, but a trivial answer cannot be told from the right one, whatever the inputs."""

    def __init__(self, what: str, todo: str) -> None:
        super().__init__(what)
        self.todo = todo


class Reference:
    """The reference's module, executed once per contract; `draw_parameters` makes a model for one evaluation.

    Raises:
        ReferenceFailed: the source raises, or lacks Model, get_inputs or get_init_inputs.
    """

    def __init__(self, contract: dict[str, Any], device: str) -> None:
        import torch

        self._torch: Any = torch
        self._arranged = arranger()
        self.contract = contract
        self.device = device
        self.mode = "eval" if EVAL_NOTE in contract["notes"] else "train"
        self._dtype = getattr(torch, contract["precision"])
        with self._reported("when its file was executed"):
            self._module = _execute(contract["task"]["source"])
        self._model: Any = None
        self._snapshot: Any = None
        self._oracle: tuple[Any, Snapshot] | None = None
        self.init: list[Any] = []
        self.verifiable = False
        """Whether an evaluation has told every trivial answer from the right one."""
        self.unverifiable: Unverifiable | None = None
        """Why that is not possible, once it has been tried."""

    def _seed(self) -> int:
        """A seed for the next draw."""
        return secret_seed()

    def draw_parameters(self) -> None:
        """Construct the model anew under a secret seed."""
        seeded(self._seed())
        with self._reported("in Model(*get_init_inputs())"):
            self.init = list(self._module.get_init_inputs())
            model = self._module.Model(*[self._cast(v) for v in self.init])
        model = moved(model, self.device, self._dtype)
        self._model = model.eval() if self.mode == "eval" else model  # a constructor may put single modules into eval
        missing = [path for path, tensor in self._state().items() if tensor is None]
        if missing:
            raise ReferenceFailed(f"the reference has no parameter, buffer or tensor named {', '.join(missing)}")
        self._changed()

    def change_parameters(self, change: Callable[[str, Any, bool], Any]) -> bool:
        """Let `change` make each parameter anew, from (path, tensor, is it a buffer); false when it leaves all as they are."""
        seeded(self._seed())
        learnt = {name for name, _ in self._model.named_parameters(remove_duplicate=False)}
        any_moved = False
        with self._torch.no_grad():
            for name, tensor in self._state().items():
                new = change(name, tensor, name not in learnt)
                any_moved = any_moved or new is not tensor
                tensor.copy_(new)
        self._changed()
        return any_moved

    def restore_parameters(self, values: Sequence[Any]) -> None:
        """Set the parameters and buffers, in the contract's order."""
        with self._torch.no_grad():
            for tensor, value in zip(self.parameters(), values, strict=True):
                tensor.copy_(value)
        self._changed()

    def parameters(self) -> list[Any]:
        """The contract's parameters in its order, on the device."""
        return [tensor.detach() for tensor in self._state().values()]

    def aliases(self) -> dict[str, str]:
        """Further names of the contract's parameters (tied weights) → the contract's own."""
        own = {id(tensor): path for path, tensor in self._state().items()}
        names = {path: own[id(t)] for path, t in registered(self._model).items() if id(t) in own}
        return {path: name for path, name in names.items() if path != name}

    @functools.cached_property
    def draws_constants(self) -> bool:
        """Whether get_inputs() gives the same values under every seed; `draw_inputs` varies them then."""
        draws: list[list[Any]] = []
        for _ in range(2):
            seeded(self._seed())
            with self._reported("in get_inputs()"):
                draws.append([v for v in self._raw_inputs() if isinstance(v, self._torch.Tensor)])
        return all(self._torch.equal(a, b) for a, b in zip(*draws, strict=True))

    @functools.cached_property
    def keeps_state(self) -> bool:
        """Whether a call changes what the next one gives. Each call starts from the drawn state then."""
        inputs = self.draw_inputs(0)
        with self._torch.no_grad(), self._reported("in forward()"):
            first = [t.clone() for t in self._forward(self._model, 0, _cloned(inputs))]
            second = self._forward(self._model, 0, _cloned(inputs))
            differ = not all(self._torch.equal(a, b) for a, b in zip(first, second, strict=True))
        return self._snapshot.put_back() and differ

    def draw_inputs(self, case: int, distribution: str = OWN) -> list[Any]:
        """Input tensors of a case, in its order, under a fresh secret seed, on the device; with what forward() draws."""
        seeded(self._seed())
        specs = self.contract["cases"][case]["inputs"]
        own = [s for s in specs if s["name"] not in self._draws(case)]
        with self._reported("in get_inputs()"):
            drawn = list(self._case_inputs(case))
        tensors = [v for v in drawn if isinstance(v, self._torch.Tensor)]
        if len(tensors) != len(own):
            raise ReferenceFailed(f"get_inputs() gave {len(tensors)} tensors, the contract has {len(own)}")
        fitted = [self._fit(t, s) for t, s in zip(tensors, own, strict=True)]
        values = distort(distribution, vary(fitted) if self.draws_constants else fitted)
        by_name = {s["name"]: v for s, v in zip(own, values, strict=True)}
        by_name |= self._draw_in_forward(case, by_name)
        return [by_name[s["name"]] for s in specs]

    def _draws(self, case: int) -> list[str]:
        """Names of the inputs that stand for what forward() draws."""
        return list(self.contract["cases"][case].get("draws", ()))

    def _draw_in_forward(self, case: int, inputs: dict[str, Any]) -> dict[str, Any]:
        """Let forward() draw once, and keep what it drew."""
        names = self._draws(case)
        if not names:
            return {}
        seeded(self._seed())
        with self._torch.no_grad(), self._reported("in forward()"), recording(self._dtype) as draws:
            self._model(*_cloned(self._named_arguments(case, inputs)))
        self._snapshot.put_back()
        if len(draws.taken) != len(names):
            raise ReferenceFailed(f"forward() drew {len(draws.taken)} times, the contract has {len(names)} draws")
        types = {s["name"]: getattr(self._torch, s["dtype"]) for s in self.contract["cases"][case]["inputs"]}
        return {n: t.to(self.device, types[n]).contiguous() for n, t in zip(names, draws.taken, strict=True)}

    def _fit(self, tensor: Any, spec: dict[str, Any]) -> Any:
        moved = tensor.detach().to(self.device, getattr(self._torch, spec["dtype"]))
        return resample(moved, spec["shape"]).contiguous()

    def outputs(self, case: int, inputs: Sequence[Any]) -> list[Any]:
        """What the reference gives for these inputs, in the contract's precision. May change the inputs if it does so."""
        with self._reported("in forward()"):
            return self._call(self._model, self._snapshot, case, inputs)

    def timed(self, case: int, inputs: Sequence[Any], time: Timer) -> tuple[list[Any], float]:
        """The bare call that is the baseline, timed by `time`: its outputs and seconds.

        Where forward() draws random numbers, it draws in the timed call as it always does; the outputs are those of another
        call, on the given draws.
        """
        replayed = self.outputs(case, _cloned(inputs)) if self._draws(case) else None
        args = self._arguments(case, inputs)
        taken = memory_of(self._model, args)
        with self._torch.no_grad():
            result, seconds = time(lambda: [self._arranged(t, taken) for t in as_list(self._model(*args))])
            outputs = self._snapshot.own(result)
            if self.keeps_state:  # else a cache that it fills stays filled, as in eager PyTorch
                self._snapshot.put_back()
        return outputs if replayed is None else replayed, seconds

    def oracle_outputs(self, case: int, inputs: Sequence[Any]) -> list[Any]:
        """The same in float64.

        Raises:
            RuntimeError, TypeError, NotImplementedError: the reference does not run in float64, or memory is short.
        """
        if self._oracle is None:
            model = moved(copy.deepcopy(self._model), self.device, self._torch.float64)
            self._oracle = model, Snapshot(model)
        doubles = [x.double() if x.is_floating_point() else x for x in inputs]
        return self._call(*self._oracle, case, doubles)

    def call(self, function: str, *arguments: Any) -> Any:
        """What another function of the reference file gives.

        Raises:
            ReferenceFailed: there is none, or it raises.
        """
        with self._reported(f"in {function}()"), self._torch.no_grad():
            return getattr(self._module, function)(*arguments)

    def _call(self, model: Any, snapshot: Snapshot, case: int, inputs: Sequence[Any]) -> list[Any]:
        with self._torch.no_grad():
            outputs = snapshot.own(self._forward(model, case, inputs))
            snapshot.put_back()
        return outputs

    def _forward(self, model: Any, case: int, inputs: Sequence[Any]) -> list[Any]:
        """forward() on these inputs, which hold its random draws too."""
        arguments = self._arguments(case, inputs)
        names = self._draws(case)
        if not names:
            return as_list(model(*arguments))
        by_name = self._by_name(case, inputs)
        with replaying([by_name[name] for name in names]) as draws:
            outputs = as_list(model(*arguments))
        draws.check()
        return outputs

    def _by_name(self, case: int, inputs: Sequence[Any]) -> dict[str, Any]:
        return {t["name"]: x for t, x in zip(self.contract["cases"][case]["inputs"], inputs, strict=True)}

    def _arguments(self, case: int, inputs: Sequence[Any]) -> list[Any]:
        return self._named_arguments(case, self._by_name(case, inputs))

    def _named_arguments(self, case: int, inputs: dict[str, Any]) -> list[Any]:
        spec = self.contract["cases"][case]
        values = inputs | {s["name"]: s["value"] for s in spec["scalars"]}
        return [values[name] for name in spec["forward_order"]]

    def _state(self) -> dict[str, Any]:
        """Path → tensor of the contract's parameters: registered ones, buffers, and plain attributes."""
        return {p["path"]: reach(self._model, p["path"]) for p in self.contract["parameters"]}

    def _changed(self) -> None:
        """The model's state is another one now."""
        self._snapshot = Snapshot(self._model)
        self._oracle = None

    def _cast(self, value: Any) -> Any:
        is_float = isinstance(value, self._torch.Tensor) and value.is_floating_point()
        return value.to(self._dtype) if is_float else value

    def _case_inputs(self, case: int) -> Any:
        """What get_cases() gives for the case, by its name; without it, what get_inputs() gives."""
        get_cases = getattr(self._module, "get_cases", None)
        cases: dict[str, Any] = self._made_here(get_cases) if get_cases else {}
        name = self.contract["cases"][case]["name"]
        return cases[name] if name in cases else self._raw_inputs()

    def _raw_inputs(self) -> Any:
        return self._made_here(self._module.get_inputs)

    def _made_here(self, make: Callable[[], Any]) -> Any:
        """Draw where the data is needed: 4 GiB take milliseconds on a GPU and many seconds on a processor."""
        try:
            with self._torch.device(self.device):
                return make()
        except RuntimeError:
            if self.device == "cpu":
                raise
            return make()  # it mixes its own CPU tensors with drawn ones

    @contextmanager
    def _reported(self, where: str) -> Generator[None]:
        try:
            yield
        except Exception as e:
            raise ReferenceFailed(f"the reference raised {type(e).__name__} {where}: {e}") from e


def contract_id(contract: dict[str, Any]) -> str:
    """The content address of a contract given as JSON; the same as `Contract.id` of the model (a test compares them)."""
    spec = {k: v for k, v in contract.items() if k not in ("floor", "floors", "degeneracy", "features")}
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"))
    return "c_" + hashlib.sha256(text.encode()).hexdigest()[:16]


def _execute(source: str) -> types.ModuleType:
    module = types.ModuleType("groundtruth")
    module.__file__ = FILE
    sys.modules["groundtruth"] = module  # dataclasses and torch.jit look their module up
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    exec(compile(source, FILE, "exec"), module.__dict__)  # noqa: S102 - the user's reference; this process is boxed for it
    lacking = [name for name in ("Model", "get_inputs", "get_init_inputs") if not hasattr(module, name)]
    if lacking:
        raise AttributeError(f"it does not define {', '.join(lacking)}")
    return module


def _cloned(arguments: Sequence[Any]) -> list[Any]:
    """Copies, since a forward() may write to its inputs."""
    import torch

    return [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
