"""References that draw random numbers in forward(), through the builder and the judge: who uses the drawn ones passes."""

from typing import Any

import pytest

pytestmark = pytest.mark.alone

TASK = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(8, 16, 2, batch_first=True)
    def forward(self, x):
        h = torch.randn(2, x.size(0), 16)
        c = torch.randn(2, x.size(0), 16)
        return self.lstm(x, (h, c))[0][:, -1]
def get_inputs():
    return [torch.rand(4, 5, 8)]
def get_init_inputs():
    return []
"""
GIVEN = (
    TASK.replace("class Model(", "class ModelNew(")
    .replace("forward(self, x)", "forward(self, x, h, c)")
    .replace("        h = torch.randn(2, x.size(0), 16)\n        c = torch.randn(2, x.size(0), 16)\n", "")
)


def test_a_recurrent_layer_starts_from_the_state_that_the_judge_drew(workshop: Any) -> None:
    contract = workshop.contract(TASK)
    assert len(contract.cases[0].draws) == 2
    seen = workshop.evaluate(contract, GIVEN, python=True)
    assert seen.status == "passed", seen.reason
    own = GIVEN.replace("self.lstm(x, (h, c))", "self.lstm(x, (torch.randn_like(h), c))")
    assert workshop.evaluate(contract, own, python=True).status == "wrong_output"
