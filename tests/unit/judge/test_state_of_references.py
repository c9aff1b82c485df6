"""What a reference carries: plain attributes, modules in eval, tied weights, a state from call to call, alignment."""

from collections.abc import Callable
from typing import Any

import pytest

from hiera_mcp.contracts.header import ALIGNMENT
from hiera_mcp.model.contract import Contract
from hiera_mcp.sandbox.child.layout import PAGE

pytestmark = pytest.mark.alone

HEAD = """
import torch
import torch.nn as nn
def get_init_inputs():
    return []
def get_inputs():
    return [torch.rand(64, 32) + 0.5]
"""

PLAIN = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.rand(32) + 1
        self.norm = nn.BatchNorm1d(32)
        self.norm.running_var.fill_(4.0)
        self.norm.eval()
    def forward(self, x):
        return self.norm(x) * self.scale
"""
)

PLAIN_CPP = """
#include "contract.h"
#include <cmath>
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    for (int i = 0; i < 64; i++)
        for (int j = 0; j < 32; j++) {
            float y = (in->x0[i * 32 + j] - p->norm_running_mean[j]) / std::sqrt(p->norm_running_var[j] + 1e-5f);
            out->y0[i * 32 + j] = (y * p->norm_weight[j] + p->norm_bias[j]) * p->scale[j];
        }
    return 0;
}
"""

RNN = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.randn(64, 16)
        self.cell = nn.Linear(48, 16)
        self.calls = None
    def forward(self, x):
        self.hidden = torch.tanh(self.cell(torch.cat((x, self.hidden), dim=1)))
        self.calls = self.hidden if self.calls is None else self.hidden + self.calls
        return self.calls
"""
)

TIED = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Linear(32, 32, bias=False)
        self.up = nn.Linear(32, 32, bias=False)
        self.up.weight = self.down.weight
    def forward(self, x):
        return self.up(torch.relu(self.down(x)))
"""
)


def new(source: str) -> str:
    return source.replace("class Model(", "class ModelNew(")


def test_a_plain_attribute_is_handed_over_and_a_module_in_eval_stays_so(
    driver: Any, contract_for: Callable[..., Contract]
) -> None:
    report = driver.judge(contract_for(PLAIN), PLAIN_CPP)
    assert report.outcome == "passed", report.reason


@pytest.mark.parametrize("source", [PLAIN, RNN, TIED], ids=["attribute", "hidden state", "tied"])
def test_a_copy_of_the_reference_passes_as_a_model(
    driver: Any, contract_for: Callable[..., Contract], source: str
) -> None:
    report = driver.judge(contract_for(source), python=new(source))
    assert report.outcome == "passed", report.reason


def test_weights_that_are_tied_in_the_reference_may_be_two_in_the_model(
    driver: Any, contract_for: Callable[..., Contract]
) -> None:
    contract = contract_for(TIED)
    assert [p.path for p in contract.parameters] == ["down.weight"]
    report = driver.judge(contract, python=new(TIED).replace("self.up.weight = self.down.weight", "pass"))
    assert report.outcome == "passed", report.reason


def test_each_call_starts_from_the_constructed_state(driver: Any, contract_for: Callable[..., Contract]) -> None:
    code = """
#include "contract.h"
#include <cmath>
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    for (int i = 0; i < 64; i++)
        for (int o = 0; o < 16; o++) {
            float s = p->cell_bias[o];
            for (int j = 0; j < 32; j++) s += in->x0[i * 32 + j] * p->cell_weight[o * 48 + j];
            for (int j = 0; j < 16; j++) s += p->hidden[i * 16 + j] * p->cell_weight[o * 48 + 32 + j];
            out->y0[i * 16 + o] = std::tanh(s);
        }
    return 0;
}
"""
    contract = contract_for(RNN)
    for protocol in ("hiera", "kernelbench"):
        report = driver.judge(contract, code, protocol=protocol)
        assert report.outcome == "passed", report.reason


def test_a_reference_that_returns_its_own_buffer_keeps_what_it_returned(
    driver: Any, contract_for: Callable[..., Contract]
) -> None:
    source = HEAD + (
        "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('kept', torch.zeros(64, 32))\n"
        "    def forward(self, x):\n        self.kept.copy_(x).mul_(2)\n        return self.kept\n"
    )
    code = """
#include "contract.h"
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {
    for (int i = 0; i < 2048; i++) out->y0[i] = 2 * in->x0[i];
    return 0;
}
"""
    report = driver.judge(contract_for(source), code)
    assert report.outcome == "passed", report.reason


def test_all_pointers_are_aligned_as_the_header_promises(driver: Any, contract_for: Callable[..., Contract]) -> None:
    source = HEAD.replace("[torch.rand(64, 32) + 0.5]", "[torch.rand(7), torch.rand(13) > 0.5]") + (
        "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a = nn.Parameter(torch.rand(3))\n        self.b = nn.Parameter(torch.rand(5))\n"
        "    def forward(self, x, m):\n        return x * self.a[0], ~m\n"
    )
    code = f"""
#include "contract.h"
extern "C" size_t hiera_workspace_bytes(void) {{ return 17; }}
static bool off(const void* p) {{ return (uintptr_t)p % {ALIGNMENT} != 0; }}
extern "C" int hiera_prepare(const hiera_params* p, void* ws) {{ return off(p->a) || off(p->b) || off(ws) ? 3 : 0; }}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void* ws) {{
    if (off(in->x0) || off(in->x1) || off(p->a) || off(p->b) || off(out->y0) || off(out->y1) || off(ws)) return 4;
    for (int i = 0; i < 7; i++) out->y0[i] = in->x0[i] * p->a[0];
    for (int i = 0; i < 13; i++) out->y1[i] = !in->x1[i];
    return 0;
}}
"""
    report = driver.judge(contract_for(source), code)
    assert report.outcome == "passed", report.reason
    assert PAGE % ALIGNMENT == 0
