"""Fake tensors come without torch._dynamo, which takes as long to import as torch; who asks for it still gets it."""

import subprocess
import sys
from pathlib import Path

import hiera_mcp

START = """
import sys
import torch
from hiera_mcp.sandbox.child.lazy_dynamo import fake_mode
with fake_mode(), torch.no_grad():
    y = torch.relu(torch.nn.Conv1d(3, 4, 3)(torch.rand(2, 3, 8)))
assert tuple(y.shape) == (2, 4, 6)
"""


def run(code: str) -> str:
    root = str(Path(hiera_mcp.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", START + code], capture_output=True, text=True, env={"PYTHONPATH": root}, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_making_fake_tensors_does_not_import_dynamo() -> None:
    assert (
        run("print('torch._dynamo' in sys.modules, 'torch._dynamo.symbolic_convert' in sys.modules)") == "False False\n"
    )


def test_whoever_imports_dynamo_gets_the_whole_of_it() -> None:
    assert run("import torch._dynamo; print(callable(torch._dynamo.optimize))") == "True\n"
    assert run("from torch._dynamo.source import LocalSource; print(LocalSource.__name__)") == "LocalSource\n"


def test_an_attribute_of_the_stand_in_brings_the_real_package() -> None:
    assert run("print(torch._dynamo.is_compiling(), 'torch._dynamo.eval_frame' in sys.modules)") == "False True\n"


def test_compiling_still_works() -> None:
    code = "f = torch.compile(lambda x: x * 2, backend='eager'); print(f(torch.ones(2)).tolist())"
    assert run(code) == "[2.0, 2.0]\n"
