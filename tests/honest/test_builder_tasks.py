"""Tasks that are easily mistaken, through the builder and the judge, each with a plain right candidate, which must pass."""

from typing import Any

import pytest

from hiera_mcp.model.contract import Precision

pytestmark = pytest.mark.alone
HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def task(forward: str, inputs: str, init: str = "pass", args: str = "x") -> str:
    return (
        f"{HEAD}class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {init}\n"
        f"    def forward(self, {args}):\n        {forward}\n"
        f"def get_inputs():\n    return {inputs}\ndef get_init_inputs():\n    return []\n"
    )


def run(body: str) -> str:
    return (
        '#include "contract.h"\n#include <cmath>\n#include <cstring>\n'
        'extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* o, void*) {\n'
        f"    (void)in; (void)p;\n    {body}\n    return 0;\n}}\n"
    )


BATCH_NORM = """
for (int c = 0; c < 24; c++) {
    double sum = 0, squares = 0;
    for (int i = 0; i < 200; i++) sum += in->x[i * 24 + c];
    double mean = sum / 200;
    for (int i = 0; i < 200; i++) squares += std::pow(in->x[i * 24 + c] - mean, 2);
    double scale = p->bn_weight[c] / std::sqrt(squares / 200 + 1e-5);
    for (int i = 0; i < 200; i++) o->out[i * 24 + c] = (float)((in->x[i * 24 + c] - mean) * scale + p->bn_bias[c]);
}"""
LOSS = """
double sum = 0;
for (int i = 0; i < HIERA_NUMEL_a; i++) sum += ((double)in->a[i] - in->b[i]) * ((double)in->a[i] - in->b[i]);
*o->out = (float)(sum / HIERA_NUMEL_a);"""
EACH = "for (int i = 0; i < HIERA_NUMEL_out; i++) "
HALF = EACH + "{ _Float16 h; memcpy(&h, in->x + i, 2); h = (_Float16)((float)h * 3); memcpy(o->out + i, &h, 2); }"

CASES: dict[str, tuple[str, str, Precision]] = {
    "batch norm in train mode": (
        task("return self.bn(x)", "[torch.randn(200, 24)]", "self.bn = nn.BatchNorm1d(24)"),
        run(BATCH_NORM),
        "float32",
    ),
    "in place": (
        task("return x.mul_(2).add_(1)", "[torch.rand(64, 64)]"),
        run(EACH + "o->out[i] = 2 * in->x[i] + 1;"),
        "float32",
    ),
    "scalar loss": (
        task("return F.mse_loss(a, b)", "[torch.rand(64, 64), torch.rand(64, 64)]", args="a, b"),
        run(LOSS),
        "float32",
    ),
    "float16": (task("return x * 3", "[torch.rand(64, 64)]"), run(HALF), "float16"),
    "bfloat16": (
        task("return x.abs()", "[torch.randn(64, 64)]"),
        run(EACH + "o->out[i] = in->x[i] & 0x7FFF;"),
        "bfloat16",
    ),
    "ignored seed": (
        task("return x.sqrt()", "[torch.linspace(1, 2, 4096)]"),
        run(EACH + "o->out[i] = std::sqrt(in->x[i]);"),
        "float32",
    ),
    "tensor kept as an attribute": (
        task("return x * self.scale", "[torch.rand(64, 64)]", "self.scale = torch.rand(64) + 1"),
        run(EACH + "o->out[i] = in->x[i] * p->scale[i % 64];"),
        "float32",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_plain_candidate_for_the_task_passes(workshop: Any, name: str) -> None:
    source, code, precision = CASES[name]
    result = workshop.evaluate(workshop.contract(source, precision), code)
    assert result.status == "passed", result.reason
