"""How many elements go into one result, and what kind an operator is: real calls, and what torch knows of its operators."""

from collections.abc import Callable

import pytest
import torch

from hiera_mcp.model.work import Trace
from hiera_mcp.sandbox.child import trace_extents, trace_kinds

Tracer = Callable[..., Trace]
TaskText = Callable[..., str]

IMAGE = "[torch.rand(2, 4, 6, 8)]"
"""384 elements."""
VOLUME = "[torch.rand(2, 4, 6, 8, 10)]"
ROWS = "[torch.rand(5, 8)]"

CALLS = [
    # forward, inputs, operator, elements in one result, dimensions
    ("x.sum()", IMAGE, "sum", 384, (0, 1, 2, 3)),
    ("x.sum(-1)", IMAGE, "sum", 8, (3,)),
    ("x.sum((0, 2), keepdim=True)", IMAGE, "sum", 12, (0, 2)),
    ("x.mean([-2, -1])", IMAGE, "mean", 48, (2, 3)),
    ("x.mean(None)", IMAGE, "mean", 384, (0, 1, 2, 3)),
    ("x.amax((1, -1))", IMAGE, "amax", 32, (1, 3)),
    ("x.amin(2)", IMAGE, "amin", 6, (2,)),
    ("x.max(1)[0]", IMAGE, "max", 4, (1,)),
    ("x.max()", IMAGE, "max", 384, (0, 1, 2, 3)),
    ("x.argmax(-2)", IMAGE, "argmax", 6, (2,)),
    ("x.argmin()", IMAGE, "argmin", 384, (0, 1, 2, 3)),
    ("x.prod(1)", IMAGE, "prod", 4, (1,)),
    ("(x > 0).any(-1)", IMAGE, "any", 8, (3,)),
    ("(x > 0).all()", IMAGE, "all", 384, (0, 1, 2, 3)),
    ("x.var((2, 3))", IMAGE, "var", 48, (2, 3)),
    ("x.std()", IMAGE, "std", 384, (0, 1, 2, 3)),
    ("torch.var_mean(x, 1)[0]", IMAGE, "var_mean", 4, (1,)),
    ("x.logsumexp((1, 2))", IMAGE, "logsumexp", 24, (1, 2)),
    ("x.norm()", IMAGE, "linalg_vector_norm", 384, (0, 1, 2, 3)),
    ("x.norm(p=1, dim=-1)", IMAGE, "linalg_vector_norm", 8, (3,)),
    ("torch.linalg.vector_norm(x, dim=(0, 1))", IMAGE, "linalg_vector_norm", 8, (0, 1)),
    ("torch.aminmax(x, dim=1)[0]", IMAGE, "aminmax", 4, (1,)),
    ("x.count_nonzero(2)", IMAGE, "count_nonzero", 6, (2,)),
    ("x.topk(2)[0]", IMAGE, "topk", 8, (3,)),
    ("x.topk(2, 1)[0]", IMAGE, "topk", 4, (1,)),
    ("x.kthvalue(2)[0]", IMAGE, "kthvalue", 8, (3,)),
    ("x.median(1)[0]", IMAGE, "median", 4, (1,)),
    ("x.sort(2)[0]", IMAGE, "sort", 6, (2,)),
    ("x[0, 0].trace()", IMAGE, "trace", 6, ()),
    ("x.cumsum(-1)", IMAGE, "cumsum", 8, (3,)),
    ("x.cumprod(0)", IMAGE, "cumprod", 2, (0,)),
    ("x.cummax(1)[0]", IMAGE, "cummax", 4, (1,)),
    ("torch.logcumsumexp(x, 2)", IMAGE, "logcumsumexp", 6, (2,)),
    ("x.softmax(1)", IMAGE, "_softmax", 4, (1,)),
    ("x.log_softmax(-1)", IMAGE, "_log_softmax", 8, (3,)),
    ("F.layer_norm(x, (8,))", IMAGE, "native_layer_norm", 8, (3,)),
    ("F.group_norm(x, 2)", IMAGE, "native_group_norm", 96, (1, 2, 3)),
    ("nn.BatchNorm2d(4)(x)", IMAGE, "native_batch_norm", 96, (0, 2, 3)),
    ("nn.BatchNorm2d(4).eval()(x)", IMAGE, "native_batch_norm", 1, ()),
    ("F.instance_norm(x)", IMAGE, "native_batch_norm", 48, (0, 2, 3)),
    ("torch._weight_norm(x, x[:, :1, :1, :1], 0)", IMAGE, "_weight_norm_interface", 192, (1, 2, 3)),
    ("F.max_pool1d(x[0], 3)", IMAGE, "max_pool2d_with_indices", 3, ()),
    ("F.max_pool2d(x, (3, 2))", IMAGE, "max_pool2d_with_indices", 6, ()),
    ("F.max_pool3d(x, 2)", VOLUME, "max_pool3d_with_indices", 8, ()),
    ("F.avg_pool1d(x[0], 4)", IMAGE, "avg_pool2d", 4, ()),
    ("F.avg_pool3d(x, (1, 2, 3))", VOLUME, "avg_pool3d", 6, ()),
    ("F.adaptive_avg_pool2d(x, (3, 2))", IMAGE, "_adaptive_avg_pool2d", 8, ()),
    ("F.adaptive_avg_pool3d(x, (3, 8, 5))", VOLUME, "_adaptive_avg_pool3d", 4, ()),
    ("F.adaptive_max_pool2d(x, 1)", IMAGE, "adaptive_max_pool2d", 48, (2, 3)),
    ("F.mse_loss(x, x)", IMAGE, "mse_loss", 384, (0, 1, 2, 3)),
    ("F.mse_loss(x, x, reduction='none')", IMAGE, "mse_loss", 1, ()),
    ("F.huber_loss(x, x)", IMAGE, "huber_loss", 384, (0, 1, 2, 3)),
    ("F.nll_loss(x, torch.zeros(5, dtype=torch.int64))", ROWS, "nll_loss_forward", 5, ()),
    ("torch.cdist(x, x[:3], p=1.0)", ROWS, "_cdist_forward", 8, ()),
    ("F.embedding_bag(torch.zeros(6, 4, dtype=torch.int64), x)", ROWS, "_embedding_bag_forward_only", 4, ()),
    ("x @ x.mT", ROWS, "mm", 8, ()),
    ("x @ x[0]", ROWS, "mv", 8, ()),
    ("x[0] @ x[1]", ROWS, "dot", 8, ()),
    ("torch.addmm(x[:, :5], x, x.mT)", ROWS, "addmm", 8, ()),
    ("torch.baddbmm(x[:, :, :, :6][0], x[0], x[0].mT)", IMAGE, "baddbmm", 8, ()),
    ("torch.addbmm(x[0, 0, :, :6], x[0], x[0].mT)", IMAGE, "addbmm", 4 * 8, ()),
    ("torch.einsum('bchw,bcvw->bchv', x, x)", IMAGE, "bmm", 8, ()),
    ("torch.outer(x[0], x[1])", ROWS, "mul", 1, ()),
    ("nn.Bilinear(8, 8, 3)(x, x)", ROWS, "_trilinear", 64, ()),
    ("F.scaled_dot_product_attention(x, x[:, :, :5], x[:, :, :5])", IMAGE, None, 5, ()),
    ("nn.Conv2d(4, 6, (3, 2), groups=2)(x)", IMAGE, "convolution", 2 * 6, ()),
    ("nn.Conv3d(4, 6, 2, dilation=2)(x)", VOLUME, "convolution", 4 * 8, ()),
    ("nn.ConvTranspose2d(4, 6, 3, groups=2)(x)", IMAGE, "convolution", 2 * 9, ()),
    ("nn.ConvTranspose2d(4, 6, 4, stride=2)(x)", IMAGE, "convolution", 4 * 4, ()),
    ("torch.fft.rfft(x).abs()", IMAGE, "_fft_r2c", 8, (3,)),
    ("x.relu()", IMAGE, "relu", 1, ()),
]  # fmt: skip


@pytest.mark.parametrize(("forward", "inputs", "name", "reduced", "dims"), CALLS, ids=[c[0] for c in CALLS])
def test_the_extent_of_a_call_is_what_a_reader_would_count(
    trace: Tracer,
    task_text: TaskText,
    forward: str,
    inputs: str,
    name: str | None,
    reduced: int,
    dims: tuple[int, ...],
) -> None:
    module, _, arguments = forward.rpartition("(") if forward.startswith("nn.") else ("nn.Identity()", "", "")
    called = f"self.f({arguments}" if arguments else forward
    traced = trace(task_text(init=f"self.f = {module}", forward=f"return {called}", inputs=inputs))
    wanted = "attention" if name is None else name
    found = [o for o in traced.operators if (wanted in o.name if name is None else o.name == f"aten.{wanted}")]
    assert [(o.reduced, o.reduced_dims) for o in found] == [(reduced, dims)]


WITHOUT_RULE = {
    "_native_batch_norm_legit_no_training": "uses the running statistics",
    "_batch_norm_no_update": "uses the running statistics",
    "addr": "an outer product",
}


@pytest.mark.parametrize("kind", ["gemm", "conv", "reduction", "normalisation", "scan"])
def test_every_operator_that_reduces_has_a_rule_or_a_reason_for_none(kind: str) -> None:
    assert trace_kinds.KINDS[kind] - set(trace_extents.RULES) - set(WITHOUT_RULE) == set()


def test_names_in_the_tables_are_operators_of_torch() -> None:
    names = set(trace_extents.RULES) | set(trace_kinds.COSTS) | set(trace_kinds.CUBIC) | trace_kinds.PER_RESULT
    names = names.union(*trace_kinds.KINDS.values())
    assert sorted(n for n in names if not hasattr(torch.ops.aten, n)) == []


KINDS = {
    "elementwise": "relu relu_ gelu_ hardtanh_ masked_fill_ where clamp add_ pow hardswish_ glu silu lerp eq logical_and",
    "movement": "copy_ cat clone gather index_select constant_pad_nd flip tril_ embedding",
    "other": "sort scatter_add_ scatter index_put_ _fft_r2c linalg_qr bincount nonzero unique_consecutive no_such_operator",
    "gemm": "aten.addmm bmm addmm_ _trilinear",
    "attention": "_scaled_dot_product_flash_attention_for_cpu aten._scaled_dot_product_efficient_attention",
    "reduction": "sum any max mse_loss",
    "normalisation": "_softmax native_layer_norm",
}


@pytest.mark.parametrize(("kind", "name"), [(k, n) for k, names in KINDS.items() for n in names.split()])
def test_kinds_are_told_by_lists_and_by_the_tags_of_torch(kind: str, name: str) -> None:
    assert trace_kinds.kind(name) == kind


def test_costs_grow_with_the_length_of_transforms_and_the_rows_of_factorised_matrices() -> None:
    assert trace_kinds.cost("aten._fft_c2c", reduced=1024) == 50
    assert trace_kinds.cost("sort", reduced=256) == 8
    assert trace_kinds.cost("linalg_cholesky_ex", rows=30) == pytest.approx(10)
    assert trace_kinds.cost("gelu_") == trace_kinds.cost("gelu") == 5
    assert trace_kinds.cost("cat") == trace_kinds.cost("scatter") == 0


@pytest.mark.parametrize(
    ("forward", "inputs", "name", "flops"),
    [
        ("x @ x[0]", ROWS, "mv", 2 * 5 * 8),
        ("x[0] @ x[1]", ROWS, "dot", 2 * 8),
        ("torch.addbmm(x[0, 0, :, :6], x[0], x[0].mT)", IMAGE, "addbmm", 2 * 4 * 8 * 36),
        ("torch.cdist(x, x[:3], p=1.0)", ROWS, "_cdist_forward", 3 * 5 * 3 * 8),
        ("F.nll_loss(x, torch.zeros(5, dtype=torch.int64))", ROWS, "nll_loss_forward", 5),
        ("F.max_pool2d(x, 3, 1, 1)", IMAGE, "max_pool2d_with_indices", 9 * 384),
        ("torch.linalg.cholesky(x @ x.mT)", ROWS, "linalg_cholesky_ex", 5**3 / 3),
    ],
)
def test_work_that_torch_does_not_count_is_counted(
    trace: Tracer, task_text: TaskText, forward: str, inputs: str, name: str, flops: float
) -> None:
    traced = trace(task_text(forward=f"return {forward}", inputs=inputs))
    assert [o.flops for o in traced.operators if o.name == f"aten.{name}"] == pytest.approx([flops])


def test_a_loss_that_picks_one_score_per_row_reads_no_more(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(
        task_text(
            forward="return F.nll_loss(x, t)",
            args="x, t",
            inputs="[torch.rand(64, 1000), torch.zeros(64, dtype=torch.int64)]",
        )
    )
    (loss,) = [o for o in traced.operators if o.name == "aten.nll_loss_forward"]
    assert loss.bytes_read == 64 * 4 + 64 * 8


def test_weights_of_copied_modules_are_seen_through_their_views(trace: Tracer, task_text: TaskText) -> None:
    init = "import copy; self.a = nn.Linear(8, 8); self.b = copy.deepcopy(self.a)"
    traced = trace(task_text(init=init, forward="return self.b(self.a(x))"))
    assert [traced.operators[c.operator].name for c in traced.calls] == ["aten.addmm", "aten.addmm"]
    read = {traced.values[v].owner for c in traced.calls for v in c.reads}
    assert {"state.a.weight", "state.b.weight"} <= read
