"""torch_demo.py: how a built candidate is used from PyTorch, through ctypes. A program of its own, standing alone."""

import pprint

from hiera_mcp.contracts.header import ALIGNMENT
from hiera_mcp.model.contract import Contract, TensorSpec
from hiera_mcp.model.space import is_cpu


def render_torch_demo(contract: Contract) -> str:
    """`python torch_demo.py case0.so` builds the reference, calls the library and prints both results' difference."""
    first = contract.cases[0]
    facts = {
        "contract": contract.id,
        "device": "cpu" if is_cpu(contract.target) else "cuda",
        "precision": contract.precision,
        "mode": "eval" if "mode: eval" in contract.notes else "train",
        "parameters": [p.path for p in contract.parameters],
        "inputs": [_row(t) for t in first.inputs],
        "outputs": [_row(t) for t in first.outputs],
        "forward": [_source(n, [t.name for t in first.inputs]) for n in (*first.forward_order, *first.draws)],
    }
    program = _PROGRAM.replace("@ALIGNMENT@", str(ALIGNMENT)).replace("@CASE@", repr(first.name))
    program = program.replace("@RECORDING@", _RECORDING if first.draws else "")
    program = program.replace("@REFERENCE@", _WITH_DRAWS if first.draws else _WITHOUT_DRAWS)
    return program.replace("@FACTS@", pprint.pformat(facts, width=110, sort_dicts=False))


def _row(spec: TensorSpec) -> tuple[str, tuple[int, ...], str]:
    return (spec.name, spec.shape, spec.dtype)


def _source(name: str, inputs: list[str]) -> int | None:
    """Number of the input that fills this place of forward(); None for a scalar, which keeps its own value."""
    return inputs.index(name) if name in inputs else None


_WITHOUT_DRAWS = "        expected = model(*map(copied, args))\n        got = kernel(*args)"
_WITH_DRAWS = """        with Recording() as recording:
            expected = model(*map(copied, args))
        got = kernel(*args, *recording.draws)"""
_RECORDING = '''
class Recording(torch.utils._python_dispatch.TorchDispatchMode):
    """Keeps the random numbers that forward() draws; they are inputs of the kernel. Of a dropout, its mask of 0 and 1."""

    def __init__(self):
        super().__init__()
        self.draws = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded not in func.tags or not self.active(func, args, kwargs or {}):
            return result
        if isinstance(result, tuple):
            self.draws.append(result[1].to(args[0].dtype))
            return result
        writes = any(a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments)
        result = result if writes else cast(result)
        self.draws.append(result.clone())
        return result

    @staticmethod
    def active(func, args, kwargs):
        """Attention and dropout carry the tag even when they are told not to drop anything."""
        values = {a.name: a.default_value for a in func._schema.arguments}
        values |= dict(zip((a.name for a in func._schema.arguments), args)) | kwargs
        return all(values[name] for name in ("dropout_p", "train", "training") if name in values)

'''


_PROGRAM = '''"""How a built candidate is used from PyTorch. Usage: python torch_demo.py LIBRARY.so

LIBRARY.so is the candidate compiled together with cpp_source.cpp (case 0); groundtruth.py lies beside this file.
"""

import ctypes
import math
import sys
from functools import reduce
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
import groundtruth

CONTRACT = @FACTS@

DTYPE = getattr(torch, CONTRACT["precision"])


def cast(value):
    """Floating-point tensors take the contract's precision; integers, booleans and plain values stay as they are."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(CONTRACT["device"], DTYPE if value.is_floating_point() else value.dtype)


def empty(shape, dtype):
    """Dense memory at a multiple of @ALIGNMENT@ bytes, which contract.h promises and torch alone does not."""
    size = math.prod(shape) * dtype.itemsize
    raw = torch.empty(size + @ALIGNMENT@, dtype=torch.uint8, device=CONTRACT["device"])
    start = -raw.data_ptr() % @ALIGNMENT@
    return raw[start : start + size].view(dtype).view(shape)


def dense(tensor):
    return empty(tensor.shape, tensor.dtype).copy_(tensor)


def pointers(tensors):
    return (ctypes.c_void_p * max(1, len(tensors)))(*(t.data_ptr() for t in tensors))


def copied(value):
    return value.clone() if isinstance(value, torch.Tensor) else value


def example():
    """The forward arguments of the first case."""
    cases = groundtruth.get_cases() if hasattr(groundtruth, "get_cases") else {}
    return [cast(a) for a in cases.get(@CASE@) or groundtruth.get_inputs()]

@RECORDING@
class Kernel:
    """A built candidate: call it with the forward arguments of the reference, and the numbers that it draws."""

    def __init__(self, library, model):
        self.lib = ctypes.CDLL(str(Path(library).resolve()))
        self.lib.hiera_flat_contract.restype = ctypes.c_char_p
        self.lib.hiera_flat_workspace_bytes.restype = ctypes.c_size_t
        built_for = self.lib.hiera_flat_contract().decode()
        if built_for != CONTRACT["contract"]:
            raise SystemExit(f"{library} was built for contract {built_for}, not {CONTRACT['contract']}")
        state = [reduce(getattr, path.split("."), model) for path in CONTRACT["parameters"]]
        self.params = [dense(cast(tensor.detach())) for tensor in state]
        size = self.lib.hiera_flat_workspace_bytes()
        self.workspace = empty((size,), torch.uint8) if size else None
        self._check("hiera_prepare", self.lib.hiera_flat_prepare(pointers(self.params), *self._tail()))

    def __call__(self, *args):
        inputs = [None] * len(CONTRACT["inputs"])
        for place, argument in zip(CONTRACT["forward"], args):
            if place is not None:
                inputs[place] = dense(cast(argument))
        outputs = [empty(shape, getattr(torch, dtype)) for _, shape, dtype in CONTRACT["outputs"]]
        code = self.lib.hiera_flat_run(pointers(inputs), pointers(self.params), pointers(outputs), *self._tail())
        self._check("hiera_run", code)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _tail(self):
        workspace = ctypes.c_void_p(self.workspace.data_ptr() if self.workspace is not None else None)
        stream = torch.cuda.current_stream().cuda_stream if CONTRACT["device"] == "cuda" else None
        return workspace, ctypes.c_void_p(stream)

    @staticmethod
    def _check(function, code):
        if code:
            why = ": not implemented (HIERA_NOT_IMPLEMENTED), as the skeleton is" if code == -1 else ""
            raise SystemExit(f"{function} returned {code}{why}")


def main(library):
    torch.manual_seed(0)
    model = groundtruth.Model(*map(cast, groundtruth.get_init_inputs())).to(CONTRACT["device"], DTYPE)
    if CONTRACT["mode"] == "eval":
        model.eval()
    for module in model.modules():  # tensors that are plain attributes: Module.to leaves them behind
        for name, value in list(vars(module).items()):
            if isinstance(value, torch.Tensor):
                setattr(module, name, cast(value.detach()))
    args = example()
    with torch.no_grad():
        kernel = Kernel(library, model)
@REFERENCE@
    got, expected = ((x,) if isinstance(x, torch.Tensor) else tuple(x) for x in (got, expected))
    for (name, shape, _), a, b in zip(CONTRACT["outputs"], got, expected):
        error = (a.double() - b.double()).abs().max().item()
        print(f"{name} {list(shape)}: greatest difference {error:.3e}, greatest value {b.abs().max().item():.3e}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
'''
