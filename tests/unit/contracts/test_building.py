"""From a trace to a contract: names, semantics, features, floor, identity."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.contracts.build import build_contract, cpu_peaks
from hiera_mcp.contracts.floor import duration, quantity
from hiera_mcp.contracts.names import Namer, legal
from hiera_mcp.contracts.tolerance import default_tolerance
from hiera_mcp.contracts.units import matrix_unit, tensor_cores
from hiera_mcp.model.contract import Contract, Precision, Task
from hiera_mcp.model.hardware import Peaks
from hiera_mcp.model.work import HostRates, Trace, TracedOperator

Tracer = Callable[..., Trace]
TaskText = Callable[..., str]
ContractOf = Callable[..., Contract]

GPU = Peaks(
    bandwidth=2e12,
    flops={"fp32": 2e13, "fp64": 1e13, "fp64_tensor": 2e13, "tf32_tensor": 1.5e14, "bf16_tensor": 3e14},
    basis="round numbers",
)
EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "tasks").glob("*.py"))
SOURCE = "class Model: ..."


@pytest.fixture
def linear(trace: Tracer, task_text: TaskText) -> Trace:
    """Linear 64 → 32 and ReLU on 128 rows."""
    return trace(
        task_text(
            init="self.fc = nn.Linear(64, 32)", inputs="[torch.rand(128, 64)]", forward="return self.fc(x).relu()"
        )
    )


def built(
    trace: Trace, target: str = "cuda:sm_80", precision: Precision = "float32", allow_tf32: bool = False
) -> Contract:
    task = Task(name="t", source=SOURCE)
    return build_contract(task, target, precision, trace, GPU, 1 << 36, allow_tf32)


def test_the_floor_of_a_linear_layer_matches_a_hand_count(linear: Trace) -> None:
    floor = built(linear).floor
    moved = 4 * (128 * 64 + 32 * 64 + 32 + 128 * 32)
    flops = 2 * 128 * 64 * 32
    assert floor.memory_seconds == pytest.approx(moved / 2e12)
    assert floor.math_seconds == pytest.approx(flops / 5e13)
    assert floor.peak_flops == pytest.approx(1.5e14 / 3)
    assert floor.seconds == max(floor.memory_seconds, floor.math_seconds)
    assert floor.bound == "memory"
    assert floor.arithmetic == (
        "max(57.5 kB / 2 TB/s = 28.7 ns, 524 kFLOP / 50 TFLOP/s (tf32_tensor in 3 passes) = 10.5 ns)"
    )


def test_features_of_a_linear_layer_match_a_hand_count(linear: Trace) -> None:
    features = built(linear).features
    gemm, relu = features.operators
    assert (gemm.name, gemm.kind, gemm.count, gemm.flops) == ("aten.addmm", "gemm", 1, 2 * 128 * 64 * 32)
    assert (relu.name, relu.kind, relu.bytes) == ("aten.relu", "elementwise", 2 * 4 * 128 * 32)
    assert gemm.bytes == 4 * (128 * 64 + 32 * 64 + 32 + 128 * 32)
    assert features.unfused_bytes == gemm.bytes + relu.bytes
    assert features.compulsory_bytes == gemm.bytes
    assert features.launches == 2
    assert features.parameter_bytes == 4 * (32 * 64 + 32)
    assert sum(o.share for o in features.operators) == pytest.approx(1)
    assert features.arithmetic_intensity == pytest.approx(features.flops / features.compulsory_bytes)


def test_cpu_peaks_are_what_this_host_was_measured_to_do(linear: Trace, host_rates: HostRates) -> None:
    contract = build_contract(
        Task(name="t", source=SOURCE), "cpu", "float32", linear, cpu_peaks(linear, host_rates), 1 << 36
    )
    assert contract.floor.bandwidth == 2e10
    assert contract.floor.peak_flops == 1e11
    assert "measured on this host" in contract.floor.basis


def test_rates_are_those_of_the_working_set(host_rates: HostRates) -> None:
    assert [host_rates.bandwidth_for(n) for n in (1.0, 1 << 20, 1 << 23, 1 << 24, 1e12)] == [
        2e10,
        2e10,
        2e10,
        1e10,
        1e10,
    ]


def test_identity_ignores_what_was_measured_and_follows_what_was_specified(linear: Trace) -> None:
    one = built(linear)
    busy = linear.model_copy(update={"trivial_outputs": None, "probe_reason": "busy"})
    assert built(busy).id == one.id
    ids = {
        one.id,
        built(linear, target="cuda:sm_90a").id,
        built(linear, allow_tf32=True).id,
        build_contract(Task(name="t", source=SOURCE + " "), "cuda:sm_80", "float32", linear, GPU, 1 << 36).id,
    }
    assert len(ids) == 4


def test_names_are_unique_over_inputs_outputs_scalars_and_parameters(
    contract_of: ContractOf, task_text: TaskText
) -> None:
    contract = contract_of(
        task_text(
            init="self.out = nn.Parameter(torch.ones(8)); self.fc = nn.Linear(8, 8); self.fc_weight = nn.Parameter(torch.ones(8))",
            args="out, class_, fc_bias",
            inputs="[torch.rand(4, 8), 2.0, torch.rand(8)]",
            forward="return self.fc(out) * class_ + fc_bias * self.out * self.fc_weight",
        )
    )
    case = contract.cases[0]
    names = [t.name for t in (*case.inputs, *case.outputs, *case.scalars, *contract.parameters)]
    assert len(set(names)) == len(names)
    assert case.forward_order == (case.inputs[0].name, case.scalars[0].name, case.inputs[1].name)
    assert {p.path for p in contract.parameters} == {"out", "fc_weight", "fc.weight", "fc.bias"}


def test_parameters_say_what_they_are(contract_of: ContractOf, task_text: TaskText) -> None:
    contract = contract_of(
        task_text(
            init="self.c = nn.Conv2d(4, 8, 3, groups=2); self.t = nn.ConvTranspose2d(8, 6, 2); self.b = nn.BatchNorm2d(6); "
            "self.g = nn.GroupNorm(2, 6); self.spare = nn.Linear(2, 2); self.r = nn.Parameter(torch.rand(6, 1, 1))",
            inputs="[torch.rand(2, 4, 8, 8)]",
            forward="return self.g(self.b(self.t(self.c(x)))) * self.r",
        )
    )
    by = {p.path: p for p in contract.parameters}
    assert by["c.weight"].layout.startswith("[out_channels, in_channels / groups, *kernel]")
    assert by["t.weight"].layout.startswith("[in_channels, out_channels / groups, *kernel]")
    assert "Winograd" in by["c.weight"].may_precompute
    assert by["c.weight"].consumed_by == "Conv2d c(4, 8, kernel_size=(3, 3), stride=(1, 1), groups=2)"
    assert by["b.running_var"].role == "running_var"
    assert any("train mode" in c for c in by["b.running_var"].constraints)
    assert "fold" in by["b.weight"].must_not_precompute
    assert by["g.weight"].role == "affine weight"
    assert by["spare.weight"].constraints == ("forward() does not read it",)
    assert by["r"].consumed_by == "Model.forward()"


def test_a_batch_norm_in_eval_mode_may_be_folded(contract_of: ContractOf, task_text: TaskText) -> None:
    contract = contract_of(
        task_text(
            init="self.l = nn.Linear(8, 8); self.b = nn.BatchNorm1d(8); self.d = nn.Dropout()",
            forward="return self.d(self.b(self.l(x)))",
        )
    )
    weight = next(p for p in contract.parameters if p.path == "b.weight")
    assert "may be folded" in weight.may_precompute
    assert "mode: eval" in contract.notes


@pytest.mark.parametrize(
    ("layer", "path", "layout"),
    [
        ("nn.LSTM(8, 4)", "r.weight_ih_l0", "[4 · hidden_size, input_size]: input, forget, cell, output"),
        ("nn.GRU(8, 4, bidirectional=True)", "r.bias_hh_l0_reverse", "[3 · hidden_size]: reset, update, new"),
        ("nn.MultiheadAttention(8, 2)", "r.in_proj_weight", "[3 · embed_dim, embed_dim]: rows of query, key, value"),
    ],
)
def test_recurrent_and_attention_weights_name_their_gates(
    contract_of: ContractOf, task_text: TaskText, layer: str, path: str, layout: str
) -> None:
    call = "self.r(x, x, x)[0]" if "Attention" in layer else "self.r(x)[0]"
    contract = contract_of(
        task_text(init=f"self.r = {layer}", inputs="[torch.rand(3, 2, 8)]", forward=f"return {call}")
    )
    row = next(p for p in contract.parameters if p.path == path)
    assert row.layout.startswith(layout)


def test_tensor_core_legality_has_a_reason() -> None:
    assert tensor_cores("cpu", "float32", True, 1.0) == (False, "a cpu has no Tensor Cores")
    assert not tensor_cores("cuda:sm_80", "float32", False, 1.0)[0]
    assert tensor_cores("cuda:sm_80", "float32", True, 1.0)[0]
    assert tensor_cores("cuda:sm_90a", "bfloat16", False, 1.0)[0]
    legal, reason = tensor_cores("cuda:sm_90a", "bfloat16", False, 0.0)
    assert not legal and "no operator" in reason
    assert tensor_cores("cuda:sm_80", "float64", False, 1.0)[0]
    assert not tensor_cores("cuda:sm_89", "float64", False, 1.0)[0]


def test_the_fastest_legal_unit_serves_a_matrix_product() -> None:
    assert matrix_unit(GPU, "float32", allow_tf32=True).flops == 1.5e14
    assert matrix_unit(GPU, "float32", allow_tf32=False).flops == 5e13
    assert matrix_unit(GPU, "bfloat16", allow_tf32=False).flops == 3e14
    assert matrix_unit(GPU, "float64", allow_tf32=False).name == "fp64_tensor"
    only = Peaks(bandwidth=1.0, flops={"fp32": 5.0}, basis="b")
    assert matrix_unit(only, "float64", allow_tf32=False).name == "fp32"


def test_tolerances_follow_the_precision() -> None:
    assert default_tolerance("float32").rtol == 1e-4
    assert default_tolerance("float16").atol == default_tolerance("bfloat16").atol == 1e-2
    assert default_tolerance("float64").rtol == 1e-10
    assert default_tolerance("float32", allow_tf32=True).allow_tf32
    assert not default_tolerance("float16", allow_tf32=True).allow_tf32


def test_views_cost_nothing_and_unknown_traffic_counts_whole_tensors(linear: Trace) -> None:
    view = TracedOperator(name="aten.t", flops=0, bytes_read=0, bytes_written=0, is_view=True)
    more = linear.model_copy(update={"operators": (*linear.operators, view), "touched_bytes": None})
    assert built(more).features.launches == built(linear).features.launches
    assert built(more).features.compulsory_bytes == 4 * (128 * 64 + 32 * 64 + 32 + 128 * 32)


@given(st.lists(st.text(max_size=10), max_size=20))
def test_names_are_legal_and_unique(wanted: list[str]) -> None:
    namer = Namer()
    names = [namer.name(w) for w in wanted]
    assert len(set(names)) == len(names)
    for name in names:
        assert name.isascii() and name.isidentifier()
        assert "__" not in name and not name.startswith("_")


def test_harmless_names_stay_and_others_change() -> None:
    assert [legal(n) for n in ("x", "Q", "weight_2", "inputA")] == ["x", "Q", "weight_2", "inputA"]
    assert [legal(n) for n in ("class", "NAN", "__x", "linux", "hiera_run", "é", "3d")] == [
        "class_",
        "nan",
        "x",
        "linux_",
        "hiera_run_",
        "arg",
        "arg_3d",
    ]


def test_quantities_read_well() -> None:
    assert quantity(1.0995e12, "FLOP") == "1.1 TFLOP"
    assert quantity(12, "B") == "12 B"
    assert [duration(t) for t in (2.0, 0.0123, 4.5e-6, 3e-9)] == ["2 s", "12.3 ms", "4.5 µs", "3 ns"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_every_example_becomes_a_contract_that_no_trivial_output_passes(path: Path, contract_of: ContractOf) -> None:
    contract = contract_of(path.read_text())
    assert contract.degeneracy.measured, contract.degeneracy.reason
    assert not contract.degeneracy.degenerate
    assert contract.features.compulsory_bytes > 1 << 22
    assert contract.floor.seconds > 0


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3
