"""Where a float64 oracle does not fit into memory, part of each batch has one, if its samples stand for themselves."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from hiera_mcp.model.contract import Contract
from hiera_mcp.sandbox.child import machine
from hiera_mcp.sandbox.child.record import Record
from hiera_mcp.sandbox.child.reference import Reference
from hiera_mcp.sandbox.child.trials import Trial, Trials

SHAPE = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = {inner}

    def forward(self, {names}):
        return {body}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""


def source(body: str, names: str = "x", inputs: str = "torch.randn(64, 48)", inner: str = "None") -> str:
    return SHAPE.format(body=body, names=names, inputs=inputs, inner=inner)


ALONE = source("torch.relu(self.inner(x))", inner="torch.nn.Linear(48, 96)")
TOGETHER = source("self.inner(x)", inner="torch.nn.BatchNorm1d(48)")
SQUARE = source("torch.softmax(x @ y, 1)", "x, y", "torch.randn(64, 64), torch.randn(64, 64)")
NO_BATCH = source("x.sum(0)")


def trial_of(
    contract_for: Callable[..., Contract], text: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> tuple[Trial, Record]:
    """The first trial of a task, in a memory that holds this share of its batch in float64."""
    contract = contract_for(text).model_dump(mode="json")
    tensors = [t for k in ("inputs", "outputs") for t in contract["cases"][0][k]]
    batch, state = (sum(8 * torch.Size(t["shape"]).numel() for t in some) for some in (tensors, contract["parameters"]))

    def free_memory(device: str) -> int:
        return int(8 * (share * batch + state)) + 64

    monkeypatch.setattr(machine, "free_memory", free_memory)
    reference, record = Reference(contract, "cpu"), Record()
    reference.draw_parameters()
    trial = Trials(reference, record, lambda: None).one(0, 0, "own #1", "own")
    assert trial is not None
    return trial, record


def test_what_fits_has_an_oracle_for_all_of_it(contract_for: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    trial, record = trial_of(contract_for, ALONE, 1.5, monkeypatch)
    assert (record.oracle, record.oracle_share, record.notes) == ("float64", 1.0, [])
    assert trial.expected[0].oracle.dtype == torch.float64


@pytest.mark.parametrize("text", [ALONE, SQUARE], ids=["linear", "square factors"])
def test_part_of_a_batch_is_compared_with_float64_and_all_with_the_reference(
    contract_for: Any, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial, record = trial_of(contract_for, text, 0.2, monkeypatch)
    (expected,) = trial.expected
    assert (record.oracle, record.oracle_share) == ("sampled", 12 / 64), record.notes
    assert expected.sampled is not None and expected.sampled.expected.oracle.dtype == torch.float64
    assert "12 random samples of 64" in record.notes[0]
    right = expected.reference
    assert expected.error(right) <= 1 and not bool(expected.failures(right).any())
    inside = right.clone()
    inside[expected.sampled.start] *= 1.001
    assert expected.error(inside) > 1 and bool(expected.failures(inside)[expected.sampled.start].any())
    outside = right.clone()
    outside[(expected.sampled.stop + 3) % 64 if expected.sampled.stop + 3 < 64 else 0] *= 1.01
    assert expected.error(outside) > 1


@pytest.mark.parametrize("text", [TOGETHER, NO_BATCH], ids=["statistics of the batch", "no batch in the output"])
def test_where_samples_do_not_stand_for_themselves_the_reference_is_the_measure_and_it_says_so(
    contract_for: Any, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial, record = trial_of(contract_for, text, 0.2, monkeypatch)
    assert (record.oracle, record.oracle_share) == ("reference", 0.0)
    assert trial.expected[0].sampled is None and "do not stand for themselves" in record.notes[0]


def test_where_not_even_the_parameters_fit_nothing_is_sampled(
    contract_for: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, record = trial_of(contract_for, ALONE, -0.1, monkeypatch)
    assert record.oracle == "reference" and "too large for the free memory" in record.notes[0]
