"""What the tracer finds out about trivial answers, on sizes that cost little; and how it makes inputs smaller."""

import re
from collections.abc import Callable
from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.contracts.build import degeneracy_of
from hiera_mcp.contracts.tolerance import default_tolerance
from hiera_mcp.model.contract import Precision
from hiera_mcp.model.work import Trace
from hiera_mcp.sandbox.child.probe_sizes import Plan, drawing, in_words, plans
from hiera_mcp.sandbox.child.trace_probe import LIMITS, REFERENCE_FACTOR

Tracer = Callable[..., Trace]
TaskText = Callable[..., str]
DEEP = "self.net = nn.Sequential(*[l for _ in range(14) for l in (nn.Linear(64, 64), nn.ReLU())], nn.Linear(64, 50))"


def passing(traced: Trace) -> set[str]:
    assert traced.trivial_outputs is not None, traced.probe_reason
    return {name for name, passes in traced.trivial_outputs.items() if passes}


@pytest.mark.parametrize(
    ("forward", "fits"),
    [
        ("return torch.relu(x - 5)", {"zeros", "constant", "other_inputs"}),
        ("return torch.relu(x)", {"input_echo"}),
        ("return torch.ones_like(x) + 1e-9 * x", {"constant", "other_inputs"}),
        ("return torch.softmax(x, -1)", set[str]()),
        ("return 1e-9 * x", set[str]()),
        ("return x.mean(-1, keepdim=True).expand(-1, 32).contiguous()", set[str]()),
    ],
)
def test_outputs_that_did_no_work_are_found_out(
    trace: Tracer, task_text: TaskText, forward: str, fits: set[str]
) -> None:
    assert passing(trace(task_text(forward=forward, inputs="[torch.rand(64, 32)]"))) == fits


def test_an_output_that_is_only_rounding_noise_lets_zeros_pass(trace: Tracer, task_text: TaskText) -> None:
    init = "self.n = nn.LayerNorm(4096)"
    traced = trace(task_text(init=init, inputs="[torch.rand(64, 4096)]", forward="return self.n(x).mean(1)"))
    assert "zeros" in passing(traced)
    assert "parameters redrawn" in traced.probe_remedy and not traced.probe_unverifiable


@pytest.mark.parametrize(
    ("parts", "told_by"),
    [
        ({"forward": "return torch.relu(x)"}, "signed"),
        ({"forward": "return torch.relu(x - 50)"}, "graded"),
        (
            {
                "init": "self.c = nn.ConvTranspose2d(4, 32, 3); self.b = nn.Parameter(torch.randn(1, 1, 1))",
                "forward": "return F.gelu(self.c(x).amin(1, keepdim=True).sum(2, keepdim=True)) + self.b",
                "inputs": "[torch.rand(4, 4, 64, 16)]",
            },
            "graded, parameters redrawn with tiny biases",
        ),
        ({"init": DEEP, "forward": "return self.net(x)", "inputs": "[torch.rand(8, 64)]"}, "parameters redrawn"),
    ],
)
def test_the_remedy_names_the_trials_that_tell_what_passed(
    trace: Tracer, task_text: TaskText, parts: dict[str, str], told_by: str
) -> None:
    degeneracy = degeneracy_of(trace(task_text(**parts)))
    assert degeneracy.degenerate and not degeneracy.unverifiable
    assert told_by in degeneracy.remedy


@pytest.mark.parametrize(
    "parts",
    [
        {"init": "self.f = nn.Linear(8, 8)", "forward": "return torch.softmax(self.f(x), 1).mean(1)"},
        {"forward": "m = x.amax(1, keepdim=True); return F.gelu(m - m.mean(1, keepdim=True))"},
        {"forward": "return x.clamp(max=0.0).clamp(0.0, 1.0)"},
        {"forward": "return x * 2, x.sum() * 0"},
        {"forward": "return x + 1", "inputs": "[torch.arange(32)]"},
    ],
)
def test_what_no_trial_tells_is_called_unverifiable(trace: Tracer, task_text: TaskText, parts: dict[str, str]) -> None:
    degeneracy = degeneracy_of(trace(task_text(**parts)))
    assert degeneracy.measured and degeneracy.unverifiable and not degeneracy.remedy


def test_a_copy_is_reported_and_may_be_judged(trace: Tracer, task_text: TaskText) -> None:
    degeneracy = degeneracy_of(trace(task_text(forward="return x.flatten(1).clone()")))
    assert degeneracy.input_echo_passes and not degeneracy.unverifiable


def test_a_state_between_calls_does_not_hide_the_output(trace: Tracer, task_text: TaskText) -> None:
    init = "self.register_buffer('h', torch.zeros(4, 8))"
    assert passing(trace(task_text(init=init, forward="self.h = self.h + x; return self.h * 1.0"))) == {"input_echo"}


def test_tasks_of_many_gigabytes_are_probed_on_a_smaller_batch(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(
        task_text(
            inputs="[torch.rand(40960, 65536), torch.randint(9, (40960,))]",
            args="x, t",
            forward="return F.cross_entropy(x, t, reduction='none')",
        )
    )
    assert traced.inputs[0].shape == (40960, 65536)
    assert passing(traced) == set()
    assert traced.probe_sizes == "x [40960, 65536] → [4, 65536], t [40960] → [4]"


def test_where_a_smaller_batch_does_not_fit_all_dimensions_shrink_together(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(
        task_text(inputs="[torch.rand(8192, 4096), torch.rand(4096, 8192)]", args="x, y", forward="return x @ y")
    )
    assert passing(traced) == set()
    sizes = re.findall(r"→ \[(\d+), (\d+)\]", traced.probe_sizes)
    assert sizes[0] == sizes[1][::-1]
    assert int(sizes[0][0]) == 2 * int(sizes[0][1]) < 4096


def test_parameters_above_the_limit_shrink_with_the_inputs_through_the_constructors_arguments(
    trace: Tracer, task_text: TaskText
) -> None:
    parts = {
        "init": "self.f = nn.Linear(n, n)",
        "init_args": "n",
        "init_inputs": "[512]",
        "forward": "return self.f(x)",
    }
    traced = trace(task_text(**parts, inputs="[torch.rand(64, 512)]"), probe_bytes=1 << 19)
    assert passing(traced) == set()
    assert traced.probe_sizes == "x [64, 512] → [16, 128]"
    fixed = task_text(init="self.f = nn.Linear(512, 512)", forward="return self.f(x)", inputs="[torch.rand(64, 512)]")
    traced = trace(fixed, probe_bytes=1 << 19)
    assert traced.trivial_outputs is None and "its parameters are 0.00105 GB" in traced.probe_reason
    assert degeneracy_of(traced).reason == traced.probe_reason


def test_half_precision_is_probed_with_its_own_limit(trace: Tracer, task_text: TaskText) -> None:
    source = task_text(inputs="[torch.rand(64, 512)]", forward="return 1 + 1e-3 * x")
    assert passing(trace(source)) == set()
    assert passing(trace(source, precision="float16")) == {"constant", "other_inputs"}


def test_the_limits_of_the_probe_are_those_of_contracts() -> None:
    assert set(LIMITS) == set(get_args(Precision))
    for precision in get_args(Precision):
        tolerance = default_tolerance(precision)
        assert tolerance.rtol == tolerance.atol == LIMITS[precision]
        assert tolerance.reference_factor == REFERENCE_FACTOR


SHAPES = st.lists(st.lists(st.integers(1, 5000), max_size=5), min_size=1, max_size=3)


@given(SHAPES)
def test_no_plan_lengthens_a_dimension_and_equal_ones_stay_equal(shapes: list[list[int]]) -> None:
    made = list(plans(shapes))
    assert [made[0](s) for s in shapes] == [tuple(s) for s in shapes]
    for plan in made:
        small = [plan(s) for s in shapes]
        assert all(1 <= b <= a for s, t in zip(shapes, small, strict=True) for a, b in zip(s, t, strict=True))
        last = {(s[-1], t[-1]) for s, t in zip(shapes, small, strict=True) if len(s) > 2}
        assert len(dict(last)) == len(last)


def test_factories_make_smaller_tensors_of_the_same_kind_and_other_calls_are_left_alone() -> None:
    known = torch.arange(6.0)
    with drawing(Plan({100: 4}, {})):
        made = [
            torch.rand(100, 7),
            torch.randn((100, 7)),
            torch.randint(0, 5, (100, 7)),
            torch.zeros(100, 7, dtype=torch.bool),
            torch.full((100, 7), 2.5),
            torch.rand(size=(100, 7)) * 2 - 1,
        ]
        assert torch.equal(known.expand(100, 6)[99], known)
    assert [tuple(t.shape) for t in made] == [(4, 7)] * 6
    assert made[2].dtype == torch.int64 and made[3].dtype == torch.bool and bool((made[4] == 2.5).all())


def test_sizes_are_told_for_the_inputs_that_changed() -> None:
    assert in_words([("x", [8, 3]), ("y", [3])], [[2, 3], [3]]) == "x [8, 3] → [2, 3]"
    assert in_words([("x", [8, 3])], [[8, 3]]) == ""
