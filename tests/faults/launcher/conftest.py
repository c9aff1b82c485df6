"""A small real task, candidates for it, and a look at the processes of the host."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.model.contract import Contract
from hiera_mcp.model.space import Space
from hiera_mcp.model.work import EvaluateRequest, Limits

REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(256, 256)]

def get_init_inputs():
    return []
"""

RELU: dict[str, Any] = {
    "task": {"name": "relu", "source": REFERENCE},
    "target": "cpu",
    "precision": "float32",
    "parameters": [],
    "cases": [
        {
            "name": "default",
            "inputs": [{"name": "x", "shape": [256, 256], "dtype": "float32"}],
            "outputs": [{"name": "out", "shape": [256, 256], "dtype": "float32"}],
            "forward_order": ["x"],
        }
    ],
    "tolerance": {"rtol": 1e-4, "atol": 1e-4, "reference_factor": 4.0, "allow_tf32": False},
    "features": {
        "operators": [],
        "flops": 65536,
        "compulsory_bytes": 524288,
        "unfused_bytes": 524288,
        "arithmetic_intensity": 0.125,
        "launches": 1,
        "parameter_bytes": 0,
        "tensor_core_legal": False,
        "tensor_core_reason": "there are no Tensor Cores on cpu",
    },
    "floor": {
        "seconds": 5.2e-6,
        "bound": "memory",
        "memory_seconds": 5.2e-6,
        "math_seconds": 6.6e-7,
        "bandwidth": 1e11,
        "peak_flops": 1e11,
        "basis": "round numbers",
        "arithmetic": "524 KB / 100 GB/s",
    },
    "degeneracy": {"measured": False, "reason": "written by hand"},
}

GOOD = """
#include "contract.h"
%(before)s
extern "C" int hiera_run(const hiera_inputs *in, const hiera_params *, const hiera_outputs *out, void *) {
    %(inside)s
    for (int i = 0; i < 65536; ++i) out->out[i] = in->x[i] < 0 ? 0 : in->x[i];
    return 0;
}
"""

MakeRequest = Callable[..., EvaluateRequest]
Tree = set[tuple[int, str]]
"""Processes by number and start time, so that a reused number is another process."""


@pytest.fixture(scope="session")
def relu() -> Contract:
    """relu of 256 × 256 float32 on cpu."""
    return Contract.model_validate(RELU)


@pytest.fixture(scope="session")
def request_for(relu: Contract) -> MakeRequest:
    """An evaluation of a right candidate that also has `before` at file level and does `inside` in each call."""

    def make(before: str = "", inside: str = "", source: str | None = None, **limits: Any) -> EvaluateRequest:
        text = GOOD % {"before": before, "inside": inside} if source is None else source
        return EvaluateRequest(
            contract=relu,
            files=render_files(relu),
            space=Space.CPP,
            sources={"cpu_source.cpp": text},
            limits=Limits(rounds_s=0.3, **limits),
        )

    return make


@pytest.fixture(scope="session")
def tree() -> Callable[[int], Tree]:
    """A process and all below it."""
    return lambda pid: set(_below(pid, _processes()))


@pytest.fixture(scope="session")
def alive() -> Callable[[Tree], Tree]:
    """Those of some processes that still run (a zombie does not)."""
    return lambda some: {(p, start) for p, (_, start, state) in _processes().items() if state != "Z"} & some


def _below(pid: int, processes: dict[int, tuple[int, str, str]]) -> Iterable[tuple[int, str]]:
    if pid in processes:
        yield pid, processes[pid][1]
    for child, (parent, _, _) in processes.items():
        if parent == pid:
            yield from _below(child, processes)


def _processes() -> dict[int, tuple[int, str, str]]:
    """pid → parent, start time, state (proc(5))."""
    found: dict[int, tuple[int, str, str]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found[int(name)] = (int(fields[1]), fields[19], fields[0])
    return found
