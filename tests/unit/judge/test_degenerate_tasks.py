"""Tasks on which an answer that takes no work fits the task's own draw: it must not pass, and an honest one must.

Where nothing tells the two apart, nothing is judged, whoever asks. The judge is told by structure, not by name: these are
small texts with the structure of known bad tasks.
"""

from collections.abc import Callable
from typing import Any

import pytest

from hiera_mcp.model.contract import Contract


def task(forward: str, inputs: str, init: str = "pass", args: str = "x") -> str:
    return f"""
import torch
import torch.nn as nn
import torch.nn.functional as F
KEPT = []
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}
    def forward(self, {args}):
        {forward}
def get_inputs():
    return {inputs}
def get_init_inputs():
    return []
"""


def stack(depth: int, width: int) -> str:
    layers = f"[l for _ in range({depth}) for l in (nn.Linear({width}, {width}), nn.ReLU())]"
    return f"self.net = nn.Sequential(*{layers}, nn.Linear({width}, 100))"


VGG = """c = [3, 8, 8, 16, 16, 16, 16, 32, 32, 32]
        block = lambda i: [nn.Conv2d(c[i], c[i + 1], 3, padding=1), nn.ReLU(), *([nn.MaxPool2d(2)] if i % 3 == 2 else [])]
        self.features = nn.Sequential(*[layer for i in range(9) for layer in block(i)])
        self.classifier = nn.Sequential(nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))"""

FIRE = """self.first = nn.Sequential(nn.Conv2d(3, 16, 3, 2), nn.ReLU(), nn.MaxPool2d(2))
        self.squeeze = nn.ModuleList([nn.Conv2d(16, 4, 1) for _ in range(5)])
        self.one = nn.ModuleList([nn.Conv2d(4, 8, 1) for _ in range(5)])
        self.three = nn.ModuleList([nn.Conv2d(4, 8, 3, padding=1) for _ in range(5)])
        self.last = nn.Conv2d(16, 10, 1)"""

FIRE_FORWARD = """x = self.first(x)
        for squeeze, one, three in zip(self.squeeze, self.one, self.three):
            x = F.relu(squeeze(x))
            x = torch.cat([F.relu(one(x)), F.relu(three(x))], 1)
        return F.relu(self.last(x)).mean(dim=(2, 3))"""

LINEAR = "self.fc = nn.Linear(64, 64)"
NORM = "self.conv = nn.Conv2d(3, 8, 3); self.norm = nn.GroupNorm(4, 8)"
IMAGES = "[torch.rand(4, 3, 12, 12)]"
LSTM = "self.lstm = nn.LSTM(16, 24, 6, batch_first=True); self.fc = nn.Linear(24, 10)"

VERIFIABLE = {
    "softmax over a long row": task("return torch.softmax(x, dim=1)", "[torch.rand(4, 50000)]"),
    "a relu that lets nothing through": task(
        "return torch.relu((self.fc(x) - 2) * 1.5)", "[torch.rand(32, 64)]", LINEAR
    ),
    "a relu far above all sums": task("return torch.relu(self.fc(x) - 12)", "[torch.rand(32, 64)]", LINEAR),
    "the mean of group-normed values": task("return self.norm(self.conv(x)).mean(dim=[1, 2, 3])", IMAGES, NORM),
    "a deep narrow network": task("return self.net(x)", "[torch.rand(64, 96)]", stack(14, 96)),
    "convolutions and a classifier": task(
        "return self.classifier(self.features(x).flatten(1))", "[torch.rand(2, 3, 32, 32)]", VGG
    ),
    "squeezing and expanding convolutions": task(FIRE_FORWARD, "[torch.rand(4, 3, 48, 48)]", FIRE),
    "a deep recurrence": task("return self.fc(self.lstm(x)[0][:, -1])", "[torch.rand(4, 32, 16)]", LSTM),
    "relu of what is not negative": task("return torch.relu(x)", "[torch.rand(64, 64)]"),
    "a hardtanh within its limits": task("return F.hardtanh(x)", "[torch.rand(64, 64)]"),
    "an elu of what is not negative": task("return F.elu(x)", "[torch.rand(64, 64)]"),
    "a saturated sigmoid": task("return torch.sigmoid(x.sum(dim=1))", "[torch.rand(64, 500)]"),
    "a sigmoid saturated by a constant": task("return torch.sigmoid(self.fc(x) + 40)", "[torch.rand(64, 64)]", LINEAR),
    "an argmax that is always the same": task("return (x + torch.arange(500)).argmax(dim=1)", "[torch.rand(64, 500)]"),
}

CONSTANT = {
    "the mean of a softmax": (
        task("return torch.softmax(self.fc(x), dim=1).mean(dim=1)", "[torch.rand(64, 64)]", LINEAR),
        "an output kept from other inputs",
    ),
    "a value minus its own mean": (
        task(
            "m = self.fc(x).amax(1, keepdim=True)\n        return F.gelu(m - m.mean(1, keepdim=True))",
            "[torch.rand(8, 64)]",
            LINEAR,
        ),
        "zeros",
    ),
    "a clamp to zero": (
        task(
            "return F.dropout(self.norm(self.conv(x)).clamp(max=0.0).clamp(0.0, 1.0), 0.2, self.training)", IMAGES, NORM
        ),
        "zeros",
    ),
    "an output beside the right one that is always zero": (
        task("return x * 2, x.sum() * 0", "[torch.rand(64)]"),
        "zeros",
    ),
    "a term too small to be seen": (
        task("return x + 1e-9 * torch.sin(self.fc(x))", "[torch.rand(64, 64)]", LINEAR),
        "a copy of input x0",
    ),
    "integers that are always the same": (
        task("return self.table(x)", "[torch.arange(64)]", "self.table = nn.Embedding(64, 8)"),
        "an output kept from other inputs",
    ),
}

WORKLESS = {
    "zeros": "return torch.zeros_like(y)",
    "a constant": "return torch.full_like(y, y.double().mean().item())",
    "the input": "return x.flatten()[: y.numel()].to(y.dtype).view(y.shape) if x.numel() >= y.numel() else y * 0",
    "what it gave first": "KEPT.append(y); return KEPT[0]",
    "the first sample for all": "return y[:1].expand(y.shape).clone()",
}
"""Candidates; `y` is the right answer, so the exploit is as good as it could be."""


def honest(source: str) -> str:
    return source.replace("class Model(", "class ModelNew(")


def workless(source: str, answer: str) -> str:
    return f"""{source.replace("class Model(", "class Right(")}
class ModelNew(Right):
    def forward(self, x):
        y = super().forward(x)
        {answer}
"""


def notes(source: str) -> tuple[str, ...]:
    return ("mode: eval",) if "dropout" in source else ()


FITS = [
    ("softmax over a long row", "zeros"),
    ("a relu that lets nothing through", "zeros"),
    ("a relu far above all sums", "zeros"),
    ("a relu far above all sums", "what it gave first"),
    ("the mean of group-normed values", "zeros"),
    ("a deep narrow network", "what it gave first"),
    ("a deep narrow network", "the first sample for all"),
    ("convolutions and a classifier", "what it gave first"),
    ("convolutions and a classifier", "the first sample for all"),
    ("squeezing and expanding convolutions", "what it gave first"),
    ("a deep recurrence", "what it gave first"),
    ("relu of what is not negative", "the input"),
    ("a hardtanh within its limits", "the input"),
    ("an elu of what is not negative", "the input"),
    ("a saturated sigmoid", "a constant"),
    ("a sigmoid saturated by a constant", "a constant"),
    ("an argmax that is always the same", "a constant"),
    ("an argmax that is always the same", "what it gave first"),
]
"""What would pass on the task's own draw, with the parameters as they are constructed."""


@pytest.mark.parametrize("name", VERIFIABLE)
def test_an_honest_answer_passes_and_all_workless_ones_are_told_from_it(
    driver: Any, contract_for: Callable[..., Contract], name: str
) -> None:
    report = driver.judge(contract_for(VERIFIABLE[name]), python=honest(VERIFIABLE[name]))
    assert report.outcome in ("passed", "suspect"), report.reason  # suspect: times of microseconds on a busy machine
    figures = report.verification.worst.trivial
    assert {"zeros", "other_inputs"} <= set(figures) and all(figure >= 2 for figure in figures.values())


@pytest.mark.parametrize(("name", "answer"), FITS)
def test_an_answer_without_work_does_not_pass(
    driver: Any, contract_for: Callable[..., Contract], name: str, answer: str
) -> None:
    report = driver.judge(contract_for(VERIFIABLE[name]), python=workless(VERIFIABLE[name], WORKLESS[answer]))
    assert report.outcome == "wrong_output", report.reason


@pytest.mark.parametrize("candidate", ["an honest one", "a wrong one"])
@pytest.mark.parametrize("name", CONSTANT)
def test_nothing_is_judged_where_nothing_tells_a_workless_answer_whoever_asks(
    driver: Any, contract_for: Callable[..., Contract], name: str, candidate: str
) -> None:
    source, fits = CONSTANT[name]
    source += f"# for {candidate}: the judge remembers nothing of the task\n"
    wrong = "return tuple(t + 1 for t in y) if isinstance(y, tuple) else y + 1"
    code = honest(source) if candidate == "an honest one" else workless(source, wrong)
    event = driver.ask(contract_for(source, notes(source)), python=code)
    assert event["event"] == "failed", event
    assert "degenerate" in event["error"] and fits in event["error"] and "nothing about the candidate" in event["error"]
    assert event["todo"]


def test_what_was_found_out_about_a_task_spares_the_next_candidate_the_trials(
    driver: Any, contract_for: Callable[..., Contract]
) -> None:
    contract = contract_for(CONSTANT["the mean of a softmax"][0])
    for trials in (True, False):
        event = driver.ask(contract, python=honest(contract.task.source))
        assert event["event"] == "failed"
        assert any("signed" in e.get("message", "") for e in driver.events) is trials


def test_a_copy_of_the_input_passes_where_the_reference_copies(
    driver: Any, contract_for: Callable[..., Contract]
) -> None:
    source = task("return x.flatten(1).clone()", "[torch.rand(32, 16, 16)]")
    report = driver.judge(contract_for(source), python=honest(source))
    assert report.outcome in ("passed", "suspect"), report.reason


def test_one_value_for_all_passes_where_the_reference_broadcasts(
    driver: Any, contract_for: Callable[..., Contract]
) -> None:
    source = task("return x.mean(dim=1, keepdim=True).expand(-1, 64).contiguous()", "[torch.rand(32, 500)]")
    report = driver.judge(contract_for(source), python=honest(source))
    assert report.outcome in ("passed", "suspect"), report.reason
    assert report.verification.trials == 8
