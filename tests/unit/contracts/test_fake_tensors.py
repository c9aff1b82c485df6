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
    y = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.LayerNorm(4))(torch.rand(2, 4))
assert tuple(y.shape) == (2, 4)
"""


EACH = """
import os
for code in sys.argv[1:]:
    if os.fork() == 0:
        exec(code)
        sys.stdout.flush()
        os._exit(0)
    assert os.wait()[1] == 0, code
"""
MORE = {
    "import torch._dynamo; print(callable(torch._dynamo.optimize))": "True",
    "from torch._dynamo.source import LocalSource as s; print(s.__name__, s.__module__)": "LocalSource torch._dynamo.source",
    "import torch._dynamo.source as s; print(s.AttrSource.__module__)": "torch._dynamo.source",
    "import torch._dynamo.variables.base as b; print(b.__spec__.origin.endswith('variables/base.py'))": "True",
    "from torch._dynamo import config; print(config is sys.modules['torch._dynamo.config'])": "True",
    "print(torch._dynamo.is_compiling(), 'torch._dynamo.eval_frame' in sys.modules)": "False True",
    "f = torch.compile(lambda x: x * 2, backend='eager'); print(f(torch.ones(2)).tolist())": "[2.0, 2.0]",
}


def run(code: str, *more: str) -> str:
    root = str(Path(hiera_mcp.__file__).parents[1])
    argv = [sys.executable, "-c", START + code, *more]
    done = subprocess.run(argv, capture_output=True, text=True, env={"PYTHONPATH": root}, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_fake_tensors_do_not_import_dynamo() -> None:
    assert run("print('torch._dynamo.symbolic_convert' in sys.modules)") == "False"


def test_whoever_asks_for_more_gets_the_real_package() -> None:
    """Each in a process of its own, forked where torch is imported and dynamo is not."""
    assert run(EACH, *MORE).splitlines() == list(MORE.values())
