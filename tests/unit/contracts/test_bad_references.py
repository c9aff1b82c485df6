"""Each way in which a reference can be unusable gets a TaskError that says what to change."""

from collections.abc import Callable

import pytest

from hiera_mcp.contracts.build import build_contract, cpu_peaks
from hiera_mcp.errors import HieraError, TaskError
from hiera_mcp.model.contract import Task
from hiera_mcp.model.work import HostRates, Trace

Tracer = Callable[..., Trace]
TaskText = Callable[..., str]
ErrorOf = Callable[..., HieraError]

PARTS = "\n\ndef get_inputs():\n    return [torch.rand(2)]\n\n\ndef get_init_inputs():\n    return []\n"
MODEL = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"

WHOLE_FILES = {
    "cases that are no dict": (MODEL + PARTS + "def get_cases():\n    return []\n", ["a list", "dict"]),
    "cases of other types": (
        MODEL + PARTS + "def get_cases():\n    return {'a': [torch.rand(2)], 'b': [torch.ones(2).int()]}\n",
        ["`a` and `b`", "x: float32", "x: int32"],
    ),
    "a case whose name is no name": (
        MODEL + PARTS + "def get_cases():\n    return {'a b': [torch.rand(2)]}\n",
        ["'a b'", "letters"],
    ),
    "a syntax error": ("import torch\nclass Model(:\n", ["line 2", "syntax"]),
    "a null byte": ("import torch\0\n", ["not valid Python"]),
    "a missing module": ("import no_such_module_xyz\n", ["no_such_module_xyz", "line 1", "standard library"]),
    "a missing name": ("from torch import no_such_name_xyz\n", ["no_such_name_xyz"]),
    "no Model": (
        "import torch\n\n\nclass Net(torch.nn.Module):\n    pass\n" + PARTS,
        ["Classes found: Net", "`Model`"],
    ),
    "a Model that is a function": ("import torch\n\n\ndef Model():\n    pass\n" + PARTS, ["torch.nn.Module"]),
    "no get_inputs": (MODEL + "\n\ndef get_init_inputs():\n    return []\n", ["`get_inputs`", "forward()"]),
    "no get_init_inputs": (MODEL + "\n\ndef get_inputs():\n    return []\n", ["`get_init_inputs`", "Model()"]),
    "an exit at module level": ("raise SystemExit(3)\n", ["SystemExit at line 1"]),
    "an error at module level": ("1 / 0\n", ["ZeroDivisionError at line 1"]),
    "an empty file": ("\n", ["no class `Model`"]),
}

BODIES = {
    "get_inputs that raises": ({"inputs": "1 / 0"}, ["get_inputs() raised ZeroDivisionError at line"]),
    "get_inputs that exits": ({"inputs": "exit(0)"}, ["get_inputs() raised SystemExit"]),
    "get_init_inputs that raises": ({"init_inputs": "1 / 0"}, ["get_init_inputs() raised ZeroDivisionError"]),
    "get_inputs that returns a tensor": ({"inputs": "torch.rand(3)"}, ["a Tensor, not a list", "[x]"]),
    "get_inputs that returns a dictionary": ({"inputs": "{'x': torch.rand(3)}"}, ["a dict, not a list"]),
    "get_init_inputs that returns None": ({"init_inputs": "None"}, ["returned None"]),
    "a constructor that raises": ({"init": "raise ValueError('bad size')"}, ["ValueError at line", "bad size"]),
    "a constructor with other arguments": ({"init_inputs": "[1, 2]"}, ["get_init_inputs()", "2 values"]),
    "a forward that raises": ({"forward": "return x @ torch.rand(3, 3)"}, ["forward() raised RuntimeError at line"]),
    "a forward with other arguments": ({"args": "x, y"}, ["forward() raised TypeError", "get_inputs()"]),
    "an output that is a dictionary": ({"forward": "return {'y': x}"}, ["forward() returned a dict", "tuple"]),
    "an output that is None": ({"forward": "pass"}, ["forward() returned None"]),
    "an output that is a number": ({"forward": "return 3.0"}, ["forward() returned a float"]),
    "an output tuple that holds None": ({"forward": "return x, None"}, ["element 1 is None"]),
    "an empty output tuple": ({"forward": "return ()"}, ["forward() returned a tuple"]),
    "a complex output": ({"forward": "return torch.fft.fft(x)"}, ["complex64", "view_as_real", "float32"]),
    "a complex input": ({"inputs": "[torch.rand(3, dtype=torch.complex64)]"}, ["Input `x`", "complex64"]),
    "a sparse output": ({"forward": "return x.to_sparse()"}, ["layout torch.sparse_coo"]),
    "an empty output": ({"forward": "return x[:0]"}, ["Output `out`", "[0, 8]"]),
    "an empty input": ({"inputs": "[torch.rand(0, 3)]"}, ["Input `x`", "is empty"]),
    "an input of an unsupported type": ({"inputs": "[torch.zeros(3, dtype=torch.uint16)]"}, ["uint16", "int32"]),
    "an input that is a list": ({"inputs": "[[1, 2]]"}, ["`x`", "a list", "get_init_inputs()"]),
    "an infinite scalar": ({"args": "x, s", "inputs": "[torch.rand(3), float('inf')]"}, ["`s`", "is inf"]),
    "random numbers that depend on values": (
        {"forward": "return torch.multinomial(x, 2)"},
        ["aten.multinomial", "depend on the values", "in get_inputs()"],
    ),
    "a reference that wants a GPU": ({"forward": "return x.to('cuda')"}, ["without .cuda()", "the judge moves it"]),
    "types that only fake tensors put up with": (
        {"init": "self.f = nn.Linear(8, 4)", "forward": "return self.f(x.half())"},
        ["forward() raised RuntimeError at line"],
    ),
    "a lazy module": ({"init": "self.f = nn.LazyLinear(4)", "forward": "return self.f(x)"}, ["LazyLinear", "f.weight"]),
}


@pytest.mark.parametrize("name", WHOLE_FILES)
def test_a_file_is_refused_with_what_to_change(name: str, error_of: ErrorOf) -> None:
    source, words = WHOLE_FILES[name]
    error = error_of(source)
    assert isinstance(error, TaskError)
    assert error.todo
    for word in words:
        assert word in str(error)


@pytest.mark.parametrize("name", BODIES)
def test_a_part_is_refused_with_what_to_change(name: str, error_of: ErrorOf, task_text: TaskText) -> None:
    parts, words = BODIES[name]
    error = error_of(task_text(**parts))
    assert isinstance(error, TaskError)
    assert error.todo
    for word in words:
        assert word in str(error)


def test_half_a_terabyte_of_input_is_traced_without_data_and_refused_by_its_size(
    trace: Tracer, task_text: TaskText, host_rates: HostRates
) -> None:
    source = task_text(inputs="[torch.rand(125_000_000_000)]", forward="return torch.relu(x) + 1")
    traced = trace(source)
    assert traced.inputs[0].nbytes == 500_000_000_000
    assert traced.probe_sizes == "x [125000000000] → [4]"
    task = Task(name="large", source=source)
    with pytest.raises(TaskError, match=r"1 TB.*cpu has 25\.8 GB.*inputs 500 GB") as caught:
        build_contract(task, "cpu", "float32", traced, cpu_peaks(traced, host_rates), 24 << 30)
    assert "batch size" in caught.value.todo


def test_a_large_tensor_among_the_constructor_arguments_is_not_allocated(trace: Tracer, task_text: TaskText) -> None:
    source = task_text(
        init_args="w",
        init="self.w = nn.Parameter(w)",
        init_inputs="[torch.rand(1_000_000, 100_000)]",
        forward="return x @ self.w[:8, :8]",
    )
    traced = trace(source)
    assert traced.parameters[0].shape == (1_000_000, 100_000)


def test_a_large_reference_that_raises_is_never_tried_on_real_data(error_of: ErrorOf, task_text: TaskText) -> None:
    error = error_of(task_text(inputs="[torch.rand(100_000_000_000)]", forward="return x.nonzero()"))
    assert isinstance(error, TaskError)
    assert "traced without data" in error.todo
