"""FLOPs and extents of a trace: against torch's own counter where it counts, else against a hand count."""

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from hiera_mcp.model.work import Trace, TracedOperator

Tracer = Callable[..., Trace]
TaskText = Callable[..., str]

COUNTED = {
    "linear": ("nn.Linear(8, 6)", "self.f(x)", "[torch.rand(4, 8)]"),
    "conv1d_dilated": ("nn.Conv1d(4, 6, 3, dilation=2, padding=1)", "self.f(x)", "[torch.rand(2, 4, 16)]"),
    "conv2d_groups": ("nn.Conv2d(4, 8, 3, groups=2, stride=2)", "self.f(x)", "[torch.rand(2, 4, 9, 8)]"),
    "conv3d": ("nn.Conv3d(2, 3, (2, 3, 3))", "self.f(x)", "[torch.rand(1, 2, 5, 6, 7)]"),
    "transposed_1d": ("nn.ConvTranspose1d(4, 6, 3, stride=2)", "self.f(x)", "[torch.rand(2, 4, 9)]"),
    "transposed_2d_groups": ("nn.ConvTranspose2d(4, 8, 3, groups=2)", "self.f(x)", "[torch.rand(2, 4, 5, 6)]"),
    "transposed_3d": ("nn.ConvTranspose3d(2, 3, 3, dilation=2)", "self.f(x)", "[torch.rand(1, 2, 4, 4, 4)]"),
    "bmm": ("nn.Identity()", "x @ x.mT", "[torch.rand(3, 4, 5)]"),
    "sdpa": ("nn.Identity()", "F.scaled_dot_product_attention(x, x, x)", "[torch.rand(2, 2, 16, 8)]"),
    "einsum": ("nn.Identity()", "torch.einsum('bij,bjk->bik', x, x)", "[torch.rand(2, 4, 4)]"),
    "lstm": ("nn.LSTM(8, 16, 2)", "self.f(x)[0]", "[torch.rand(5, 2, 8)]"),
}


@pytest.mark.filterwarnings("ignore:TF32 acceleration on top of oneDNN")
@pytest.mark.parametrize(("module", "forward", "inputs"), COUNTED.values(), ids=COUNTED)
def test_products_sum_to_what_torch_counts(
    trace: Tracer, task_text: TaskText, tmp_path: Path, module: str, forward: str, inputs: str
) -> None:
    source = task_text(init=f"self.f = {module}", forward=f"return {forward}", inputs=inputs)
    traced = trace(source)
    matrix = sum(o.count * o.flops for o in traced.operators if o.kind in ("gemm", "conv", "attention"))
    assert matrix == _counted(source, tmp_path) > 0


def _counted(source: str, folder: Path) -> int:
    """Of a real run. Its counter leaves out fused attention on a processor, so that is run as the products it is."""
    (folder / "task.py").write_text(source)
    parts = runpy.run_path(str(folder / "task.py"))
    model, inputs = parts["Model"](), parts["get_inputs"]()
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH), counter:
        model(*inputs)
    return counter.get_total_flops()


HAND = {
    # name of the operator: (forward, FLOPs, reduced, reduced_dims), on an input of 2 × 4 × 6 × 8 = 384 elements; a window
    # runs over no dimension as a whole
    "aten._softmax": ("x.softmax(-1)", 5 * 384, 8, (3,)),
    "aten.native_layer_norm": ("F.layer_norm(x, (6, 8))", 8 * 384, 48, (2, 3)),
    "aten.native_group_norm": ("F.group_norm(x, 2)", 8 * 384, 2 * 48, (1, 2, 3)),
    "aten.max_pool2d_with_indices": ("F.max_pool2d(x, 2)", 4 * 2 * 4 * 3 * 4, 4, ()),
    "aten.avg_pool2d": ("F.avg_pool2d(x, (3, 2))", 6 * 2 * 4 * 2 * 4, 6, ()),
    "aten.cumsum": ("x.cumsum(1)", 384, 4, (1,)),
    "aten.gelu": ("F.gelu(x)", 5 * 384, 1, ()),
    "aten.sum": ("x.sum((0, -1))", 384, 16, (0, 3)),
    "aten.mean": ("x.mean()", 384, 384, (0, 1, 2, 3)),
}


@pytest.mark.parametrize(("name", "hand"), HAND.items(), ids=HAND)
def test_other_operators_match_a_hand_count(
    trace: Tracer, task_text: TaskText, name: str, hand: tuple[str, float, int, tuple[int, ...]]
) -> None:
    forward, flops, reduced, dims = hand
    operator = _operator(trace(task_text(forward=f"return {forward}", inputs="[torch.rand(2, 4, 6, 8)]")), name)
    assert (operator.flops, operator.reduced, operator.reduced_dims) == (flops, reduced, dims)


def test_the_extent_of_a_product_is_its_inner_dimension(trace: Tracer, task_text: TaskText) -> None:
    for module, inputs, reduced in (
        ("nn.Linear(8, 6)", "[torch.rand(4, 8)]", 8),
        ("nn.Conv2d(4, 8, 3, groups=2)", "[torch.rand(2, 4, 9, 8)]", 2 * 9),
        ("nn.ConvTranspose2d(4, 8, 3, groups=2)", "[torch.rand(2, 4, 5, 6)]", 2 * 9),
    ):
        traced = trace(task_text(init=f"self.f = {module}", forward="return self.f(x)", inputs=inputs))
        assert [o.reduced for o in traced.operators if o.kind in ("gemm", "conv")] == [reduced], module


def _operator(traced: Trace, name: str) -> TracedOperator:
    return next(o for o in traced.operators if o.name == name)
