"""What is no result of its own is copied within the timed call, of the reference as of the candidate."""

from typing import Any

import pytest
import torch

from hiera_mcp.sandbox.child.python_candidate import PythonCandidate
from hiera_mcp.sandbox.child.state import memory_of
from hiera_mcp.sandbox.child.values import addresser, arranger


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


def test_a_tensor_that_held_an_earlier_result_which_is_still_read_is_taken_from_then_on() -> None:
    candidate: Any = object.__new__(PythonCandidate)
    candidate.__dict__ |= {
        "_address": addresser(),
        "_held": [],
        "_reused": frozenset(),
        "_taken": {(0, 0): frozenset()},
    }
    kept, place = torch.rand(8), addresser()

    def after(result: torch.Tensor) -> bool:
        candidate.__dict__["_results"] = [result]
        candidate.hold()
        return place(result) in candidate.__dict__["_taken"][0, 0]

    assert not after(torch.rand(8))
    assert not after(torch.rand(8))
    assert not after(kept)
    assert after(kept.view(2, 4))
    assert not after(torch.empty(0)) and not after(torch.empty(0))
