"""What a contract says of parameters: of each kind of module and operator, in the right words and with its own numbers."""

import json
from collections.abc import Callable

import pytest

from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.contracts.header import fields
from hiera_mcp.contracts.names import Namer
from hiera_mcp.contracts.semantics import parameters_of
from hiera_mcp.model.contract import Contract, Parameter
from hiera_mcp.model.work import Trace

ContractOf = Callable[..., Contract]
TaskText = Callable[..., str]
Read = Callable[..., dict[str, Parameter]]


@pytest.fixture
def read(trace: Callable[..., Trace], task_text: TaskText) -> Read:
    """Parameters of a task by path."""

    def run(**parts: str) -> dict[str, Parameter]:
        return {p.path: p for p in parameters_of(trace(task_text(**parts)), Namer())}

    return run


IMAGE = "[torch.rand(2, 4, 6, 6)]"


def test_readers_strides_and_layout_come_from_the_trace(read: Read) -> None:
    by = read(init="self.fc = nn.Linear(8, 3)", forward="return self.fc(x)")
    weight = by["fc.weight"]
    assert weight.read_by == ("aten.addmm as mat2 (transposed)",)
    assert weight.strides == (8, 1)
    assert weight.layout == "[out_features, in_features], row-major: y = x · weightᵀ + bias"
    assert by["fc.bias"].read_by == ("aten.addmm as self",)


def test_tied_weights_name_each_other(read: Read) -> None:
    by = read(
        init="self.e = nn.Embedding(10, 8); self.head = nn.Linear(8, 10, bias=False); self.head.weight = self.e.weight",
        inputs="[torch.randint(0, 10, (4,))]",
        forward="return self.head(self.e(x))",
    )
    (weight,) = by.values()
    assert weight.aliases == ("head.weight",)
    assert weight.read_by == ("aten.embedding as weight", "aten.mm as mat2 (transposed)")
    assert any(c.startswith("tied") and "head.weight" in c for c in weight.constraints)
    assert any("from 0 to num_embeddings - 1 = 9" in c for c in weight.constraints)


def test_a_strided_parameter_is_said_to_come_dense(read: Read) -> None:
    w = read(init="self.w = nn.Parameter(torch.rand(8, 3).t())", forward="return x @ self.w.t()")["w"]
    assert w.strides == (8, 1)
    assert any("strides [1, 3] in the reference" in c for c in w.constraints)
    assert w.layout.startswith("[out, in]")


def test_convolutions_say_their_geometry_and_groups(read: Read) -> None:
    by = read(
        init="self.c = nn.Conv2d(4, 6, (3, 1), groups=2, stride=2, padding=(1, 0)); self.d = nn.Conv2d(6, 12, 3, groups=6, "
        "dilation=2, padding=2, padding_mode='reflect'); self.t = nn.ConvTranspose2d(12, 6, 2, groups=3)",
        inputs=IMAGE,
        forward="return self.t(self.d(self.c(x)))",
    )
    geometry, groups = by["c.weight"].constraints
    assert geometry == "stride 2 × 2, padding 1 × 0, dilation 1 × 1, groups 2"
    assert groups == (
        "in_channels 4 and out_channels 6 are divisible by groups 2: output channel o reads 2 input channels, from "
        "⌊o / 3⌋ · 2 on"
    )
    assert "Winograd" not in by["c.weight"].may_precompute
    assert "padding_mode reflect" in by["d.weight"].constraints[0]
    assert by["d.weight"].constraints[1].endswith("depthwise, output channel o reads input channel ⌊o / 2⌋ alone")
    assert by["t.weight"].layout == "[in_channels, out_channels / groups, *kernel]"
    assert "in_channels 12 and out_channels 6" in by["t.weight"].constraints[1]


EVAL = "; self.eval()"


def test_an_eval_batch_norm_is_folded_only_into_the_convolution_whose_result_it_alone_reads(read: Read) -> None:
    init = "self.c = nn.Conv2d(4, 8, 3); self.b = nn.BatchNorm2d(8, eps=0.01)" + EVAL
    by = read(init=init, inputs=IMAGE, forward="return self.b(self.c(x))")
    for leaf in ("weight", "bias", "running_mean", "running_var"):
        told = by[f"b.{leaf}"].may_precompute
        assert "scale = weight / sqrt(running_var + 0.01), shift = bias - running_mean · scale" in told
        assert "into Conv2d c before it" in told
        assert by[f"b.{leaf}"].must_not_precompute == ""
    assert "with BatchNorm2d b folded in" in by["c.weight"].may_precompute


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        ("y = self.c(x); return self.b(y) + y", "aten.add needs the result of Conv2d c as it is, too"),
        ("y = self.c(x); return self.b(y), y", "outputs."),
        ("return self.b(torch.relu(self.c(x)))", "its input is written by aten.relu"),
    ],
)
def test_an_eval_batch_norm_that_cannot_be_folded_says_why(read: Read, forward: str, reason: str) -> None:
    init = "self.c = nn.Conv2d(4, 8, 3); self.b = nn.BatchNorm2d(8)" + EVAL
    by = read(init=init, inputs=IMAGE, forward=forward)
    for p in (by["b.weight"], by["b.running_var"]):
        assert "scale = weight" in p.may_precompute and "folded into" not in p.may_precompute
        assert reason in p.must_not_precompute
    assert "folded in" not in by["c.weight"].may_precompute
    if "relu" not in forward:
        assert reason in by["c.weight"].must_not_precompute


def test_a_batch_norm_on_an_input_folds_into_nothing_before_it(read: Read) -> None:
    by = read(
        init="self.b = nn.BatchNorm1d(8, affine=False); self.fc = nn.Linear(8, 3)" + EVAL,
        forward="return self.fc(self.b(x))",
    )
    told = by["b.running_mean"]
    assert "scale = 1 / sqrt(running_var + 1e-05), shift = -running_mean · scale" in told.may_precompute
    assert "into Linear fc after it" in told.may_precompute
    assert "it reads inputs.x" in told.must_not_precompute


def test_a_batch_norm_after_a_product_of_two_activations_is_not_folded(read: Read) -> None:
    by = read(init="self.b = nn.BatchNorm1d(4)" + EVAL, forward="return self.b(x @ x.t())")
    assert "both operands depend on the inputs" in by["b.weight"].must_not_precompute


def test_a_norm_that_runs_twice_is_judged_by_both_calls(read: Read) -> None:
    by = read(
        init="self.l = nn.Linear(8, 8); self.b = nn.BatchNorm1d(8)" + EVAL,
        forward="return self.b(self.l(torch.relu(self.b(self.l(x)))) * 2)",
    )
    assert "into Linear l before it" in by["b.weight"].may_precompute
    assert "its input is written by aten.mul" in by["b.weight"].must_not_precompute


def test_a_linear_layer_and_its_transposed_result_are_told_apart(read: Read) -> None:
    init = "self.l = nn.Linear(8, 8); self.b = nn.BatchNorm1d(8)" + EVAL
    along = read(init=init, inputs="[torch.rand(2, 8, 8)]", forward="return self.b(self.l(x).transpose(1, 2))")
    across = read(init=init, inputs="[torch.rand(2, 8, 8)]", forward="return self.b(self.l(x))")
    assert "into Linear l before it" in along["b.weight"].may_precompute
    assert "its channels are not the output channels of Linear l" in across["b.weight"].must_not_precompute


@pytest.mark.parametrize(
    "init", ["self.b = nn.BatchNorm2d(8)", "self.b = nn.BatchNorm2d(8, track_running_stats=False)" + EVAL]
)
def test_statistics_of_the_batch_forbid_folding_whatever_the_mode_is_called(read: Read, init: str) -> None:
    by = read(init="self.c = nn.Conv2d(4, 8, 3); " + init, inputs=IMAGE, forward="return self.b(self.c(x))")
    norm = by["b.weight"]
    assert norm.may_precompute == ""
    assert "mean and variance of its own input (32 elements each)" in norm.must_not_precompute
    assert "BatchNorm2d b folded in: its statistics are those of its own input" in by["c.weight"].must_not_precompute
    assert any(c.startswith("cancels out") for c in by["c.bias"].constraints)


def test_each_norm_has_its_own_mode(read: Read) -> None:
    by = read(
        init="self.c = nn.Conv2d(4, 8, 3); self.a = nn.BatchNorm2d(8); self.d = nn.Conv2d(8, 8, 1); self.b = "
        "nn.BatchNorm2d(8); self.b.eval()",
        inputs=IMAGE,
        forward="return self.b(self.d(self.a(self.c(x))))",
    )
    assert by["a.weight"].may_precompute == ""
    assert "into Conv2d d before it" in by["b.weight"].may_precompute
    assert any("forward() updates it" in c for c in by["a.running_mean"].constraints)
    assert any("no effect on the output" in c for c in by["a.running_mean"].constraints)
    assert not any("updates" in c for c in by["b.running_mean"].constraints)
    assert "values are variances, not negative" in by["b.running_var"].constraints


def test_instance_norm_normalises_by_each_sample_unless_it_tracks_and_is_in_eval_mode(read: Read) -> None:
    init = "self.c = nn.Conv2d(4, 8, 3); self.n = nn.InstanceNorm2d(8, affine=True{})"
    forward = "return self.n(self.c(x))"
    own = read(init=init.format("") + EVAL, inputs=IMAGE, forward=forward)
    tracked = read(init=init.format(", track_running_stats=True") + EVAL, inputs=IMAGE, forward=forward)
    assert "its own input (16 elements each)" in own["n.weight"].must_not_precompute
    assert "folded in: its statistics" in own["c.weight"].must_not_precompute
    assert "into Conv2d c before it" in tracked["n.weight"].may_precompute


def test_group_and_layer_norms_have_eps_and_divisibility(read: Read) -> None:
    by = read(
        init="self.g = nn.GroupNorm(2, 4, eps=0.5); self.l = nn.LayerNorm((6, 6))",
        inputs=IMAGE,
        forward="return self.l(self.g(x))",
    )
    assert "eps 0.5, added to the variance" in by["g.weight"].constraints
    assert "num_channels 4 is divisible by num_groups 2: 2 channels a group" in by["g.weight"].constraints
    assert by["l.bias"].layout == "[*normalized_shape], added after scaling"
    assert "statistics are those of its own input" in by["l.weight"].must_not_precompute


def test_an_lstm_with_a_projection_names_its_columns(read: Read) -> None:
    by = read(
        init="self.r = nn.LSTM(8, 6, num_layers=2, proj_size=3, bidirectional=True)",
        inputs="[torch.rand(5, 2, 8)]",
        forward="return self.r(x)[0]",
    )
    assert by["r.weight_hr_l0"].layout.startswith("[proj_size, hidden_size]")
    assert by["r.weight_hr_l0"].shape == (3, 6)
    assert by["r.weight_hh_l0"].layout.startswith("[4 · hidden_size, proj_size]")
    assert by["r.weight_ih_l0"].layout.startswith("[4 · hidden_size, input_size]")
    assert by["r.weight_ih_l1_reverse"].layout.startswith("[4 · hidden_size, 2 · proj_size]")
    assert by["r.weight_ih_l1_reverse"].layout.endswith("layer 1, backward direction")
    assert by["r.bias_ih_l0"].may_precompute == "the sum of bias_ih and bias_hh"


def test_a_gru_sums_the_biases_of_two_gates_only(read: Read) -> None:
    by = read(init="self.r = nn.GRU(8, 4)", inputs="[torch.rand(5, 2, 8)]", forward="return self.r(x)[0]")
    for leaf in ("bias_ih_l0", "bias_hh_l0"):
        assert "reset and update gates" in by[f"r.{leaf}"].may_precompute
        assert "new gate" in by[f"r.{leaf}"].must_not_precompute


@pytest.mark.parametrize("make", ["nn.utils.parametrizations.weight_norm", "nn.utils.weight_norm"])
def test_a_weight_norm_may_be_worked_out_beforehand(read: Read, make: str) -> None:
    by = read(init=f"self.fc = {make}(nn.Linear(8, 3))", forward="return self.fc(x)")
    g = next(p for p in by.values() if p.role.startswith("magnitude"))
    v = next(p for p in by.values() if p.role.startswith("direction"))
    assert (g.shape, v.shape) == ((3, 1), (3, 8))
    assert "weight = g · v / ‖v‖" in v.layout
    assert g.may_precompute.startswith("weight itself")
    assert by["fc.bias"].layout.startswith("[out_features]")


@pytest.mark.parametrize("make", ["nn.utils.parametrizations.spectral_norm", "nn.utils.spectral_norm"])
def test_a_spectral_norm_names_its_vectors(read: Read, make: str) -> None:
    by = read(init=f"self.fc = {make}(nn.Linear(8, 3))", forward="return self.fc(x)")
    roles = {p.role: p for p in by.values()}
    original = roles["weight before its spectral norm"]
    assert original.shape == (3, 8) and original.may_precompute.startswith("weight itself")
    assert roles["left singular vector"].shape == (3,) and roles["right singular vector"].shape == (8,)


@pytest.mark.parametrize(
    ("parameter", "forward", "role", "words"),
    [
        ("torch.rand(8, 3)", "x @ self.p", "weight", "[in, out], row-major: y = x @ w"),
        ("torch.rand(3, 8)", "x @ self.p.t()", "weight", "[out, in], row-major: y = x @ wᵀ"),
        ("torch.rand(3, 8)", "F.linear(x, self.p)", "weight", "[out, in], row-major: y = x @ wᵀ"),
        ("torch.rand(3, 4)", "self.p @ x", "weight", "[out, in], row-major: y = w @ x"),
        ("torch.rand(2, 8, 3)", "torch.bmm(x.expand(2, 4, 8), self.p)", "weight", "[batch, in, out], row-major: y = x @ w"),
        ("torch.rand(8)", "torch.mv(x, self.p)", "weight", "[in], row-major: y = x @ w"),
        ("torch.rand(8)", "x + self.p", "addend", "added along dimension 1 of [4, 8]"),
        ("torch.rand(4, 1)", "x + self.p", "addend", "added along dimension 0 of [4, 8]"),
        ("torch.rand(4)", "x * self.p[:, None]", "scale", "multiplied along dimension 0 of [4, 8]"),
        ("torch.rand(1)", "x * self.p", "scale", "multiplied every element of [4, 8]"),
        ("torch.rand(8)", "x / self.p", "divisor", "along dimension 1 of [4, 8]"),
        ("torch.rand(8) > 0.5", "x.masked_fill(self.p, 0.0)", "mask", "along dimension 1 of [4, 8]"),
        ("torch.rand(9, 5)", "F.embedding(x.long(), self.p)", "table", "[rows, …], one row per index"),
        ("torch.rand(4, 2)", "torch.cat([x, self.p], 1)", "piece", "along dimension 1 beside other tensors, into [4, 10]"),
        ("torch.rand(8)", "F.layer_norm(x, (8,), weight=self.p, eps=0.25)", "affine weight", "[*normalized_shape]"),
    ],
)  # fmt: skip
def test_a_bare_tensor_means_what_its_operator_does_with_it(
    read: Read, parameter: str, forward: str, role: str, words: str
) -> None:
    by = read(init=f"self.register_buffer('p', {parameter})", forward=f"return {forward}")
    assert by["p"].role == role
    assert words in by["p"].layout


def test_the_weight_of_a_functional_convolution_has_the_numbers_of_the_call(read: Read) -> None:
    by = read(
        init="self.w = nn.Parameter(torch.rand(6, 2, 3, 3))",
        inputs=IMAGE,
        forward="return F.conv2d(x, self.w, stride=2, padding=1, groups=2)",
    )
    assert by["w"].layout.startswith("[out_channels, in_channels / groups, *kernel]")
    assert by["w"].constraints[0] == "stride 2 × 2, padding 1 × 1, dilation 1 × 1, groups 2"
    assert by["w"].read_by == ("aten.convolution as weight",)


def test_a_module_of_the_tasks_own_is_not_taken_for_torchs(read: Read) -> None:
    own = (
        "class Linear(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.weight = nn.Parameter(torch.rand(8, 8))\n    def forward(self, x):\n        return x @ self.weight\n"
        "class Mine(nn.Linear):\n    pass\n"
    )
    by = read(head=own, init="self.a = Linear(); self.b = Mine(8, 3)", forward="return self.b(self.a(x))")
    assert by["a.weight"].layout == "[in, out], row-major: y = x @ w"
    assert by["b.weight"].layout.startswith("[out_features, in_features]")


def test_a_mask_is_found_behind_what_is_computed_from_it(read: Read) -> None:
    by = read(
        init="self.register_buffer('causal', torch.tril(torch.ones(9, 9)))",
        forward="return (x @ x.t()).masked_fill(self.causal[:4, :4] == 0, -1.0)",
    )
    assert by["causal"].role == "mask"
    assert by["causal"].read_by == ("aten.eq as self (as [4, 4])",)
    assert "constant" in by["causal"].may_precompute


def test_a_hidden_state_that_forward_updates_is_named(read: Read) -> None:
    by = read(
        init="self.register_buffer('h', torch.zeros(4, 8))", forward="self.h.copy_(self.h * 0.5 + x); return self.h + 1"
    )
    assert any("forward() updates it" in c for c in by["h"].constraints)


def test_what_does_not_reach_an_output_is_said_to_have_no_effect(read: Read) -> None:
    by = read(
        init="self.used = nn.Linear(8, 3); self.lost = nn.Linear(8, 3); self.spare = nn.Linear(8, 3)",
        forward="self.lost(x); return self.used(x)",
    )
    assert by["used.weight"].constraints == ()
    assert by["lost.weight"].constraints == ("no effect on the outputs: nothing that is returned depends on its value",)
    assert by["spare.weight"].constraints == ("forward() does not read it",)
    assert by["lost.weight"].may_precompute == by["spare.weight"].may_precompute == ""


def test_attention_says_how_heads_lie(read: Read) -> None:
    by = read(
        init="self.a = nn.MultiheadAttention(8, 2)", inputs="[torch.rand(3, 2, 8)]", forward="return self.a(x, x, x)[0]"
    )
    assert by["a.in_proj_weight"].constraints == (
        "embed_dim 8 is divisible by num_heads 2: head_dim 4, heads one after another",
    )


def test_the_file_tells_each_long_text_once(contract_of: ContractOf, task_text: TaskText) -> None:
    layers = "self.n = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8)) for _ in range(30)])"
    contract = contract_of(task_text(init=layers, forward="return self.n(x)"))
    text = render_files(contract)["params_semantics.json"]
    told = json.loads(text)
    assert list(told["tensors"]) == [p.name for p in contract.parameters]
    for p in contract.parameters:
        row = told["tensors"][p.name]
        full = {k: told["rules"].get(v, v) if isinstance(v, str) else v for k, v in row.items()}
        assert full["layout"] == p.layout and full["role"] == p.role and tuple(full["strides"]) == p.strides
        assert full.get("may_precompute", "") == p.may_precompute
        assert [told["rules"].get(c, c) for c in row.get("constraints", [])] == list(p.constraints)
    assert all(text.count(json.dumps(rule, ensure_ascii=False)) == 1 for rule in told["rules"].values())
    assert "nothing of inputs" in told["how_to_read"]["hiera_prepare"]


def test_the_header_names_the_dimensions(contract_of: ContractOf, task_text: TaskText) -> None:
    contract = contract_of(task_text(init="self.fc = nn.Linear(8, 3)", forward="return self.fc(x)"))
    line = next(f for f in fields(contract)["hiera_params"] if "fc_weight;" in f)
    assert "weight [out_features, in_features] of Linear fc" in line
