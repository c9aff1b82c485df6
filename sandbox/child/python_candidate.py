"""A candidate in the PyTorch space: `ModelNew` of /box/model_new.py, run on tensors that alias the shared buffers."""

import ctypes
import importlib.util
import linecache
import sys
import traceback
import types
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hiera_mcp.sandbox.child import hiera_functions
from hiera_mcp.sandbox.child.failure import CandidateFailure
from hiera_mcp.sandbox.child.state import Snapshot, assign, memory_of, moved, reach
from hiera_mcp.sandbox.child.values import addresser, arranger, as_list, decode

MODEL = "model_new.py"


class PythonCandidate:
    """One `ModelNew(*init)`.

    Raises:
        CandidateFailure: the module or the constructor raised; with the candidate's own frames of the traceback.
    """

    def __init__(self, box: Path, interface: dict[str, Any], platform: Any, device: str) -> None:
        import torch

        self._torch: Any = torch
        self._plain: type = torch.Tensor
        self._copy: Any = torch.Tensor.copy_
        self._arranged = arranger()
        self._address = addresser()
        inner: Any = torch._C  # pyright: ignore[reportPrivateUsage]
        self._plainly: Any = inner.DisableTorchFunction
        self._dispatch_modes: Any = inner._len_torch_dispatch_stack
        self._path = box / MODEL
        self._interface = interface
        self._platform = platform
        self._device = device
        self.unused: tuple[str, ...] = ()
        self._allow_tf32(bool(interface["allow_tf32"]))
        hiera_functions.library_path = str(box / "case0.so")
        sys.modules["hiera_functions"] = hiera_functions
        with self._own_failures("while model_new.py was loaded"):
            self._model = self._construct(_module(self._path).ModelNew)
        self._params: dict[str, Any] = {}
        self._buffers: dict[tuple[int, int], tuple[list[Any], list[Any]]] = {}
        self._taken: dict[tuple[int, int], frozenset[int]] = {}
        self._results: list[Any] = []
        self._held: list[Any] = []
        self._reused: frozenset[int] = frozenset()
        self._snapshot: Snapshot | None = None

    def _allow_tf32(self, allowed: bool) -> None:
        self._torch.backends.cuda.matmul.allow_tf32 = allowed
        self._torch.backends.cudnn.allow_tf32 = allowed

    def _construct(self, model_new: Callable[..., Any]) -> Any:
        init = [self._cast(decode(v)) for v in self._interface["init"]]
        model = moved(model_new(*init), self._device, getattr(self._torch, self._interface["precision"]))
        return model.eval() if self._interface["mode"] == "eval" else model

    def _cast(self, value: Any) -> Any:
        if not isinstance(value, self._torch.Tensor):
            return value
        precision = getattr(self._torch, self._interface["precision"])
        return value.to(self._device, precision if value.is_floating_point() else value.dtype)

    def workspace_bytes(self) -> list[int]:
        return [0] * len(self._interface["cases"])

    def has_prepare(self) -> bool:
        return False

    def bind(self, params: Sequence[int], cases: Sequence[dict[str, Any]]) -> None:
        """Make tensors that alias the buffers; see CCandidate.bind."""
        specs = self._interface["parameters"]
        self._params = {p["path"]: self._tensor(a, p) for a, p in zip(params, specs, strict=True)}
        for n, (case, spec) in enumerate(zip(cases, self._interface["cases"], strict=True)):
            for s, buffers in enumerate(case["sets"]):
                inputs = [self._tensor(a, t) for a, t in zip(buffers["inputs"], spec["inputs"], strict=True)]
                outputs = [self._tensor(a, t) for a, t in zip(buffers["outputs"], spec["outputs"], strict=True)]
                self._buffers[n, s] = (self._arguments(spec, inputs), outputs)

    def _arguments(self, case: dict[str, Any], inputs: list[Any]) -> list[Any]:
        by_name = {t["name"]: x for t, x in zip(case["inputs"], inputs, strict=True)}
        by_name |= {s["name"]: s["value"] for s in case["scalars"]}
        return [by_name[name] for name in (*case["forward_order"], *case.get("draws", ()))]

    def _tensor(self, address: int, spec: dict[str, Any]) -> Any:
        dtype = getattr(self._torch, spec["dtype"])
        count = 1
        for d in spec["shape"]:
            count *= d
        if not count:
            return self._torch.empty(spec["shape"], dtype=dtype, device=self._device)
        memory: Any = _HostMemory if self._device == "cpu" else _DeviceMemory
        raw = memory.tensor(self._torch, address, count * dtype.itemsize, self._device)
        return raw.view(dtype).view(spec["shape"])

    def prepare(self, case: int) -> int:
        """Hand the state over by name. Case 0 does it for all.

        Raises:
            CandidateFailure: ModelNew has state that the reference does not have, or with another shape.
        """
        if case:
            return 0
        given = self._params | {path: self._params[name] for path, name in self._interface["aliases"].items()}
        with self._torch.no_grad(), self._own_failures("while its state was set"):
            own = set(self._model.state_dict())
            if own - set(given):
                raise CandidateFailure(_missing(sorted(own - set(given)), self._params))
            self._model.load_state_dict({name: given[name].clone() for name in own}, strict=True)
            taken = {name for name in set(given) - own if self._take(name, given[name])}
            self.unused = tuple(sorted(set(self._params) - own - taken))
            self._snapshot = Snapshot(self._model) if self._interface["keeps_state"] else None
            ours = self._buffers.items()
            self._taken = {
                key: memory_of(self._model, (*args, *outputs)) | self._reused for key, (args, outputs) in ours
            }
        return 0

    def _take(self, path: str, value: Any) -> bool:
        """Set what is no part of the state dictionary: a buffer that is not persistent, a tensor kept as an attribute."""
        tensor = reach(self._model, path)
        if tensor is None or tensor.shape != value.shape:
            return False  # no such thing, or one of its own by the same name
        assign(self._model, path, value.clone())
        return True

    def run(self, case: int, buffers: int) -> int:
        """forward(), a look at what it gave, and its values in the contract's order and in memory of their own: this is what
        is timed, as eager PyTorch is."""
        args, outputs = self._buffers[case, buffers]
        taken = self._taken[case, buffers]
        with self._torch.no_grad(), self._on_stream(), self._own_failures("in forward()"):
            results = as_list(self._model(*args))
            if self._dispatch_modes():
                raise CandidateFailure("forward() left a dispatch mode entered; leave it before it returns")
            with self._plainly():
                self._check(results, outputs)
                self._results = [self._arranged(result, taken) for result in results]
        return 0

    def hold(self) -> None:
        """Keep the last results, as one does who still reads them. Where one lies in memory of those that were kept, the model
        writes its results over each other: from now on they are copied."""
        held = {self._address(result) for result in self._held if result.numel()}
        self._held = list(self._results)
        self._reused |= held & {self._address(result) for result in self._held}
        self._taken = {key: taken | self._reused for key, taken in self._taken.items()}

    def let_go(self) -> None:
        """Keep no results any more."""
        self._held = []

    def deliver(self, case: int, buffers: int) -> None:
        """Copy the last results into the output buffers, on the stream of the call and right behind it."""
        _, outputs = self._buffers[case, buffers]
        results, self._results = self._results, []
        with self._torch.no_grad(), self._on_stream(), self._plainly():
            for result, output in zip(results, outputs, strict=True):
                self._copy(output, result)
            if self._snapshot is not None:
                self._snapshot.put_back()

    def look(self, case: int, buffers: int, places: Sequence[Sequence[int]]) -> Callable[[], list[str]]:
        """Reads elements of the last results, by index, when it is called: their bytes in hex, one text per output."""
        indices = [self._torch.tensor(found, dtype=self._torch.int64) for found in places]
        take = self._take_elements

        def read() -> list[str]:
            with self._plainly():
                return [
                    take(result, index).numpy().tobytes().hex()
                    for result, index in zip(self._results, indices, strict=True)
                ]

        return read

    def _take_elements(self, result: Any, index: Any) -> Any:
        return self._torch.take(result.detach(), index).view(self._torch.uint8)

    def _check(self, results: Sequence[Any], outputs: Sequence[Any]) -> None:
        if len(results) != len(outputs):
            raise CandidateFailure(f"forward() gave {len(results)} outputs, the contract has {len(outputs)}")
        for n, (got, want) in enumerate(zip(results, outputs, strict=True)):
            if type(got) is not self._plain:
                raise CandidateFailure(f"output {n} is a {type(got).__name__}, not a plain torch.Tensor")
            if got.shape != want.shape or got.dtype != want.dtype or got.device != want.device:
                raise CandidateFailure(
                    f"output {n} is {got.dtype} {list(got.shape)} on {got.device}; "
                    f"the contract has {want.dtype} {list(want.shape)} on {want.device}"
                )

    def explain(self, function: str, code: int) -> str:
        return f"{function} returned {code}"

    @contextmanager
    def _on_stream(self) -> Generator[None]:
        if self._platform.stream is None:
            yield
            return
        cuda = self._torch.cuda
        with cuda.stream(cuda.ExternalStream(self._platform.stream, device=self._device)):
            yield

    @contextmanager
    def _own_failures(self, when: str) -> Generator[None]:
        """Turn whatever the candidate raises into a failure that shows its own frames only."""
        try:
            yield
        except CandidateFailure:
            raise
        except Exception as e:
            raise CandidateFailure(f"{type(e).__name__} {when}: {e}\n{own_frames(e, self._path)}") from e


def own_frames(error: BaseException, path: Path) -> str:
    """The traceback's lines that lie in the candidate's file."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    return "".join(f"  {path.name}:{f.lineno} in {f.name}: {f.line or ''}\n" for f in frames).rstrip()


def _module(path: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("model_new", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise CandidateFailure(f"there is no {MODEL}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["model_new"] = module
    linecache.checkcache(str(path))
    spec.loader.exec_module(module)
    if not hasattr(module, "ModelNew"):
        raise CandidateFailure(f"{MODEL} does not define ModelNew")
    return module


def _missing(missing: list[str], given: dict[str, Any]) -> str:
    return (
        f"ModelNew has state that the reference does not have: {', '.join(missing)}. "
        f"Parameters are handed over by name; the reference has: {', '.join(sorted(given)) or 'none'}."
    )


class _HostMemory:
    @staticmethod
    def tensor(torch: Any, address: int, size: int, device: str) -> Any:
        return torch.frombuffer((ctypes.c_uint8 * size).from_address(address), dtype=torch.uint8)


class _DeviceMemory:
    """CUDA array interface, version 3."""

    def __init__(self, address: int, size: int) -> None:
        data = {"shape": (size,), "typestr": "|u1", "data": (address, False), "strides": None, "version": 3}
        self.__cuda_array_interface__ = data

    @staticmethod
    def tensor(torch: Any, address: int, size: int, device: str) -> Any:
        return torch.as_tensor(_DeviceMemory(address, size), device=device)
