"""Which trials there are, and what does not leave them out."""

import time
from collections.abc import Callable

import pytest
import torch

from hiera_mcp.model.contract import Contract
from hiera_mcp.sandbox.child import trials
from hiera_mcp.sandbox.child.draws import STRETCH, changed_in_part
from hiera_mcp.sandbox.child.record import Record
from hiera_mcp.sandbox.child.reference import Reference
from hiera_mcp.sandbox.child.trials import Trial, Trials

TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return @

def get_inputs():
    return [torch.rand(64, 64)]

def get_init_inputs():
    return []
"""


def all_trials(contract: Contract, between_s: float = 0.0) -> tuple[list[Trial], Record]:
    """The trials of an evaluation whose candidate takes so long for each."""
    reference, record = Reference(contract.model_dump(mode="json"), "cpu"), Record()
    reference.draw_parameters()
    found: list[Trial] = []
    for trial in Trials(reference, record, lambda: None):
        found.append(trial)
        time.sleep(between_s)
    return found, record


def test_a_stretch_of_the_inputs_is_new_on_the_buffers_that_had_the_others(
    contract_for: Callable[..., Contract],
) -> None:
    found, _ = all_trials(contract_for(TASK.replace("@", "torch.relu(x)")))
    labels = [t.label.partition(" #")[0] for t in found]
    partly = labels.index(trials.PARTLY)
    changed, before = found[partly], found[partly - 1]
    assert changed.number == before.number
    share = float((changed.inputs[0] != before.inputs[0]).double().mean())
    assert 0 < share <= STRETCH / 4096


def test_integers_are_not_mixed_from_two_draws() -> None:
    order = torch.randperm(100)
    assert torch.equal(changed_in_part([order], [torch.randperm(100)])[0], order)
    assert changed_in_part([torch.empty(0)], [torch.empty(0)])[0].numel() == 0


def test_a_slow_candidate_does_not_shorten_what_it_has_to_pass(
    contract_for: Callable[..., Contract], monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = contract_for(TASK.replace("@", "torch.relu(x)"))
    quick, _ = all_trials(contract)
    monkeypatch.setattr(trials, "PATIENCE_S", 0.5)
    slow, _ = all_trials(contract, between_s=0.2)
    assert [t.label for t in slow] == [t.label for t in quick]


def test_huge_inputs_count_only_where_the_reference_itself_is_exact(contract_for: Callable[..., Contract]) -> None:
    exact, _ = all_trials(contract_for(TASK.replace("@", "torch.softmax(x, 1)")))
    assert any(t.label.startswith("huge") for t in exact)
    source = TASK.replace("@", "torch.sin(1000 * x)")
    inexact, record = all_trials(contract_for(source))
    assert not any(t.label.startswith("huge") for t in inexact)
    assert any("huge" in note and "inexact" in note for note in record.notes)


LAYERS = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(64, 64)
        self.scale = torch.nn.Parameter(torch.full((64,), @))

    def forward(self, x):
        return x + self.scale * self.fc(x)

def get_inputs():
    return [torch.rand(64, 64)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("source", "timed_under"),
    [
        (TASK.replace("@", "torch.relu(x - 0.5)"), trials.DRAWN),
        (LAYERS.replace("@", "1.0"), "moved"),
        (LAYERS.replace("@", "0.0"), "moved"),
        (LAYERS.replace("@", "1e-6"), "redrawn"),
    ],
    ids=["no parameters", "usual", "a gate that is closed", "a scale at which the layer is not seen"],
)
def test_calls_are_timed_under_parameters_that_nobody_knew_and_that_tell_the_trivial_answers(
    contract_for: Callable[..., Contract], source: str, timed_under: str
) -> None:
    reference = Reference(contract_for(source).model_dump(mode="json"), "cpu")
    reference.draw_parameters()
    drawn = [p.clone() for p in reference.parameters()]
    handed_over = list[list[torch.Tensor]]()
    every = Trials(reference, Record(), lambda: handed_over.append([p.clone() for p in reference.parameters()]))
    labels = [trial.label for trial in every]
    assert all(torch.equal(a, b) for a, b in zip(handed_over[-1], reference.parameters(), strict=True))
    moved = [not torch.equal(a, b) for a, b in zip(drawn, reference.parameters(), strict=True)]
    assert moved == [timed_under != trials.DRAWN] * len(drawn)
    assert timed_under == trials.DRAWN or any(f"parameters {timed_under}" in label for label in labels)
