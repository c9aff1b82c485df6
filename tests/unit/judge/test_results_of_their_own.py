"""What is no result of its own is copied within the timed call, of the reference as of the candidate."""

from typing import Any

import pytest
import torch

from hiera_mcp.sandbox.child.state import memory_of
from hiera_mcp.sandbox.child.values import arranger


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(8))
        self.register_buffer("state", torch.rand(8))
        self.plain = torch.rand(8)


MODEL, X = Model(), torch.rand(4, 8)


@pytest.mark.parametrize(
    ("tensor", "copied"),
    [
        (X, True),
        (X[1:3], True),
        (X.view(32), True),
        (X.t(), True),
        (MODEL.weight.detach(), True),
        (MODEL.state, True),
        (MODEL.plain, True),
        (X + 1, False),
        (X.clone().t(), True),
        (torch.empty(0), False),
    ],
    ids=["input", "rows", "view", "transposed", "parameter", "buffer", "attribute", "new", "new transposed", "empty"],
)
def test_a_view_of_what_others_hold_becomes_a_copy_and_a_new_tensor_stays_itself(tensor: Any, copied: bool) -> None:
    result = arranger()(tensor, memory_of(MODEL, [X, 3.0]))
    assert torch.equal(result, tensor) and result.is_contiguous()
    assert (result is not tensor) == copied
    assert result.untyped_storage().data_ptr() not in memory_of(MODEL, [X])
