"""What the tracer learns about good references of many shapes."""

from collections.abc import Callable

from hiera_mcp.model.contract import Contract
from hiera_mcp.model.work import Trace

Tracer = Callable[..., Trace]
TaskText = Callable[..., str]
ContractOf = Callable[..., Contract]


def test_names_shapes_and_types_come_from_forward_and_get_inputs(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(
        task_text(
            args="x, index, mask, alpha, mode, nothing=None",
            inputs="[torch.rand(4, 8), torch.randint(0, 4, (3,)), torch.rand(4, 8) > 0.5, 0.5, 'sum', None]",
            forward="return alpha * (x * mask)[index], index.int()",
        )
    )
    assert [(t.name, t.shape, t.dtype) for t in traced.inputs] == [
        ("x", (4, 8), "float32"),
        ("index", (3,), "int64"),
        ("mask", (4, 8), "bool"),
    ]
    assert [(s.name, s.value) for s in traced.scalars] == [("alpha", 0.5), ("mode", "sum"), ("nothing", None)]
    assert traced.forward_order == ("x", "index", "mask", "alpha", "mode", "nothing")
    assert [(t.name, t.shape, t.dtype) for t in traced.outputs] == [
        ("out0", (3, 8), "float32"),
        ("out1", (3,), "int32"),
    ]


def test_variadic_arguments_and_names_in_other_alphabets_become_identifiers(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(task_text(args="α, *rest", inputs="[torch.rand(2)] * 3", forward="return α + rest[0] * rest[1]"))
    assert len({t.name for t in traced.inputs}) == 3
    assert all(t.name.isascii() and t.name.isidentifier() for t in traced.inputs)


def test_a_scalar_output_and_a_scalar_tensor_input_have_an_empty_shape(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(task_text(inputs="[torch.rand(4), torch.tensor(2.0)]", args="x, s", forward="return (x * s).sum()"))
    assert traced.inputs[1].shape == ()
    assert traced.outputs[0].shape == ()


def test_parameters_come_with_their_module_and_in_order(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(
        task_text(
            init="self.scale = nn.Parameter(torch.ones(8)); self.net = nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6))",
            forward="return self.net(x * self.scale)",
        )
    )
    rows = {p.path: (p.shape, p.buffer, p.module_path, p.module_type) for p in traced.parameters}
    assert rows["scale"] == ((8,), False, "", "Model")
    assert rows["net.0.weight"] == ((6, 8), False, "net.0", "Linear")
    assert rows["net.1.running_var"] == ((6,), True, "net.1", "BatchNorm1d")
    assert next(iter(rows)) == "scale"
    assert "mode: train" in traced.notes
    assert any("batch norm" in n and "train mode" in n for n in traced.notes)


def test_a_shared_parameter_appears_once(trace: Tracer, task_text: TaskText) -> None:
    init = "self.a = nn.Linear(8, 8, bias=False); self.b = nn.Linear(8, 8, bias=False); self.b.weight = self.a.weight"
    traced = trace(task_text(init=init, forward="return self.b(self.a(x))"))
    assert [p.path for p in traced.parameters] == ["a.weight"]


def test_active_dropout_switches_the_reference_to_eval(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(task_text(init="self.d = nn.Dropout(0.2)", forward="return self.d(x)"))
    assert "mode: eval" in traced.notes
    assert "mode: train" not in traced.notes
    assert any("bernoulli" in n for n in traced.notes)


def test_inactive_dropout_and_attention_without_dropout_are_not_random(trace: Tracer, task_text: TaskText) -> None:
    forward = "return F.scaled_dot_product_attention(self.d(x), x, x)"
    traced = trace(task_text(init="self.d = nn.Dropout(0.0)", inputs="[torch.rand(2, 2, 16, 8)]", forward=forward))
    assert "mode: train" in traced.notes
    assert {o.kind for o in traced.operators if not o.is_view} == {"attention"}


def test_the_precision_changes_floating_point_tensors_only(trace: Tracer, task_text: TaskText) -> None:
    source = task_text(
        init="self.f = nn.Linear(8, 8)",
        args="x, i",
        inputs="[torch.rand(4, 8), torch.arange(4)]",
        forward="return self.f(x)[i]",
    )
    traced = trace(source, precision="bfloat16")
    assert [t.dtype for t in traced.inputs] == ["bfloat16", "int64"]
    assert {p.dtype for p in traced.parameters} == {"bfloat16"}
    assert traced.outputs[0].dtype == "bfloat16"


def test_matrix_products_are_counted_as_torch_counts_them(trace: Tracer, task_text: TaskText) -> None:
    init = "self.c = nn.Conv2d(3, 5, 3); self.f = nn.Linear(36, 7)"
    traced = trace(
        task_text(init=init, inputs="[torch.rand(2, 3, 8, 8)]", forward="return self.f(self.c(x).flatten(2))")
    )
    flops = {o.name: o.flops for o in traced.operators if not o.is_view}
    assert flops["aten.convolution"] == 2 * 2 * 5 * 6 * 6 * 3 * 3 * 3
    assert flops["aten.addmm"] == 2 * (2 * 5) * 36 * 7


def test_traffic_and_flops_of_an_elementwise_chain_match_a_hand_count(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(task_text(inputs="[torch.rand(10, 100)]", forward="return torch.relu(x.t() + 1.0).sum(0)"))
    ops = {o.name: o for o in traced.operators}
    assert ops["aten.t"].is_view
    assert (ops["aten.t"].flops, ops["aten.t"].bytes_read) == (0, 0)
    assert (ops["aten.add"].bytes_read, ops["aten.add"].bytes_written, ops["aten.add"].flops) == (4000, 4000, 1000)
    assert (ops["aten.sum"].bytes_read, ops["aten.sum"].bytes_written, ops["aten.sum"].flops) == (4000, 40, 1000)


def test_only_what_forward_reads_is_compulsory(trace: Tracer, task_text: TaskText) -> None:
    init = "self.table = nn.Embedding(1000, 4); self.unused = nn.Linear(8, 8)"
    traced = trace(
        task_text(
            init=init,
            args="x, i",
            inputs="[torch.rand(100, 8), torch.arange(5)]",
            forward="return self.table(i).sum() + x[:10].sum()",
        )
    )
    touched = traced.touched_bytes
    assert touched is not None
    assert touched["state.table.weight"] == 5 * 4 * 4
    assert touched["state.unused.weight"] == 0
    assert touched["inputs.x"] == 10 * 8 * 4
    assert touched["inputs.i"] == 5 * 8


def test_expanded_inputs_are_read_once(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(task_text(inputs="[torch.rand(4, 1).expand(4, 100)]", forward="return x * 2"))
    assert traced.operators[0].bytes_read == 16
    assert any(n.startswith("layout:") and "x" in n for n in traced.notes)


def test_writes_to_inputs_and_state_are_noted(trace: Tracer, task_text: TaskText) -> None:
    init = "self.register_buffer('count', torch.zeros(1))"
    traced = trace(task_text(init=init, forward="x.mul_(2); self.count += 1; return x + 1"))
    assert any(n.startswith("in place:") and "(x)" in n for n in traced.notes)
    assert any(n.startswith("updates:") and "count" in n for n in traced.notes)


def test_a_plain_tensor_attribute_that_forward_reads_is_state(trace: Tracer, task_text: TaskText) -> None:
    init = "self.table = torch.rand(8); self.spare = torch.rand(9)"
    traced = trace(task_text(init=init, forward="return x * self.table"))
    assert [(p.path, p.shape, p.buffer) for p in traced.parameters] == [("table", (8,), True)]


def test_a_tensor_that_is_neither_argument_nor_state_is_noted(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(task_text(head="TABLE = torch.rand(8)", forward="return x * TABLE"))
    assert any(n.startswith("captured:") and "[8] float32" in n for n in traced.notes)


def test_a_constructor_that_needs_values_is_run_for_real(trace: Tracer, task_text: TaskText) -> None:
    init = "n = int(torch.linspace(0, 6, 3)[1].item()); self.f = nn.Linear(8, n)"
    traced = trace(task_text(init=init, forward="return self.f(x)"))
    assert traced.outputs[0].shape == (4, 3)
    assert any(n.startswith("data-dependent:") for n in traced.notes)


def test_a_forward_that_needs_values_is_run_for_real(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(task_text(forward="return x * 2 if x.sum().item() > 0 else x"))
    assert any(n.startswith("data-dependent:") for n in traced.notes)
    assert "aten.mul" in {o.name for o in traced.operators}


def test_a_recurrent_layer_is_seen_as_its_matrix_products(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(
        task_text(
            init="self.r = nn.LSTM(8, 16)",
            inputs="[torch.rand(5, 2, 8)]",
            forward="return self.r(x)[0]",
        )
    )
    products = sum(o.count * o.flops for o in traced.operators if o.kind == "gemm")
    assert products == 2 * 5 * 2 * 4 * 16 * (8 + 16)


def test_an_output_that_is_a_view_of_an_input_reads_it(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(task_text(forward="return x.t()"))
    assert traced.touched_bytes == {"inputs.x": 4 * 8 * 4}


def test_a_parameter_that_numpy_may_read_is_not_called_unread(contract_of: ContractOf, task_text: TaskText) -> None:
    init = "self.w = nn.Parameter(torch.rand(8))"
    contract = contract_of(task_text(init=init, forward="return torch.from_numpy(x.numpy() * self.w.numpy())"))
    assert contract.parameters[0].constraints == ()
    assert any(n.startswith("data-dependent:") for n in contract.notes)


def test_equal_calls_are_one_operator_with_a_count_and_figures_of_one_call(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(task_text(forward="for _ in range(50): x = torch.relu(x)\n        return x + x.t().t()"))
    relu, *_ = traced.operators
    assert (relu.name, relu.count, relu.flops, relu.bytes_read) == ("aten.relu", 50, 32, 128)
    launched = sum(o.count for o in traced.operators if not o.is_view)
    assert len(traced.calls) == launched == 51
    assert {o.name for o in traced.operators if o.is_view} == {"aten.t"}


def test_calls_are_joined_by_values_and_views_are_looked_through(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(task_text(init="self.f = nn.Linear(8, 6, bias=False)", forward="return torch.relu(self.f(x)).t()"))
    product, relu = traced.calls
    assert {traced.values[n].owner for n in product.reads} == {"inputs.x", "state.f.weight"}
    assert relu.reads == product.writes
    assert (traced.values[relu.writes[0]].owner, traced.values[relu.writes[0]].nbytes) == ("outputs.out", 4 * 6 * 4)
    assert [traced.modules[c.module].type for c in traced.calls] == ["Linear", "Model"]
    weight = traced.operators[product.operator].arguments[1]
    assert (weight.name, weight.shape, weight.strides, weight.dtype) == ("mat2", (8, 6), (1, 8), "float32")
    assert traced.operators[product.operator].reduced == 8


def test_an_in_place_write_makes_a_new_value_of_the_same_memory(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(task_text(forward="y = x + 1; z = y[0]; z.mul_(2); return y * 3"))
    add, double, triple = traced.calls
    assert double.reads == add.writes
    assert double.writes != add.writes
    assert triple.reads == double.writes


def test_parameters_know_their_module_s_settings_strides_and_aliases(trace: Tracer, task_text: TaskText) -> None:
    init = "self.c = nn.Conv1d(4, 8, 3, groups=2); self.d = nn.Conv1d(4, 8, 3, groups=2); self.d.weight = self.c.weight"
    traced = trace(task_text(init=init, inputs="[torch.rand(2, 4, 9)]", forward="return self.c(x) + self.d(x)"))
    weight = next(p for p in traced.parameters if p.path == "c.weight")
    assert weight.aliases == ("d.weight",)
    assert (weight.settings["groups"], weight.settings["kernel_size"], weight.strides) == (2, [3], ())
    assert "training" not in weight.settings
    assert traced.operators[0].reduced == 4 // 2 * 3


def test_a_fill_of_a_part_is_a_draw_that_is_copied_into_it(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(task_text(forward="y = x.clone(); y[0].uniform_(); return y"))
    assert traced.draws == ("draw0",)
    assert {t.name: t.shape for t in traced.inputs} == {"x": (4, 8), "draw0": (8,)}
    clone, copy = traced.calls
    assert traced.operators[copy.operator].name == "aten.copy_"
    assert [traced.values[n].owner for n in copy.reads] == [traced.values[clone.writes[0]].owner, "inputs.draw0"]
    assert traced.values[copy.writes[0]].owner == "outputs.out"


def test_dropout_in_eval_mode_is_a_draw_and_no_write_to_an_input(trace: Tracer, task_text: TaskText) -> None:
    for forward in ("return F.dropout(x, 0.5, True)", "return torch.native_dropout(x, 0.5, True)[0]"):
        traced = trace(task_text(forward=forward), precision="bfloat16")
        assert [(t.name, t.shape, t.dtype) for t in traced.inputs][1] == ("draw0", (4, 8), "bfloat16")
        assert not any(n.startswith(("in place:", "captured:")) for n in traced.notes)


def test_a_buffer_that_forward_fills_with_random_numbers_is_updated(trace: Tracer, task_text: TaskText) -> None:
    init = "self.register_buffer('noise', torch.zeros(8))"
    traced = trace(task_text(init=init, forward="self.noise.normal_(); return x + self.noise"))
    assert traced.draws == ("draw0",)
    assert any(n.startswith("updates:") and "noise" in n for n in traced.notes)


CASES = """
def get_cases():
    return {"small": [torch.rand(4, 8), 2], "large": [torch.rand(1024, 8), 3]}
"""


def test_each_case_is_traced_under_its_name(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(task_text(args="x, n", forward="return x * n, x.sum(1)") + CASES)
    assert traced.case == "small"
    assert [t.shape for t in traced.inputs] == [(4, 8)]
    (large,) = traced.further_cases
    assert (large.name, large.inputs[0].shape, large.scalars[0].value) == ("large", (1024, 8), 3)
    assert [t.shape for t in large.outputs] == [(1024, 8), (1024,)]


def test_a_contract_has_all_cases_under_the_same_names(contract_of: ContractOf, task_text: TaskText) -> None:
    contract = contract_of(task_text(args="x, n", forward="return x * n") + CASES)
    assert [c.name for c in contract.cases] == ["small", "large"]
    assert {tuple(t.name for t in c.inputs) for c in contract.cases} == {("x",)}


def test_random_numbers_that_eval_mode_does_not_silence_leave_the_mode_alone(
    trace: Tracer, task_text: TaskText
) -> None:
    traced = trace(
        task_text(init="self.n = nn.BatchNorm1d(8)", forward="return self.n(x) + torch.randn(4, 8)"),
        precision="float64",
    )
    assert "mode: train" in traced.notes
    assert (traced.draws, traced.inputs[1].dtype) == (("draw0",), "float64")


def test_dropout_is_silenced_and_what_is_still_drawn_becomes_an_input(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(task_text(init="self.d = nn.Dropout(0.5)", forward="return self.d(x) + torch.rand_like(x)"))
    assert "mode: eval" in traced.notes
    assert traced.draws == ("draw0",)
    assert any(n.startswith("randomness:") and "bernoulli" in n for n in traced.notes)


def test_rules_for_state_integers_scalars_and_tuples_are_noted(trace: Tracer, task_text: TaskText) -> None:
    traced = trace(
        task_text(
            init="self.a = nn.Linear(8, 8); self.b = nn.Linear(8, 8); self.b.weight = self.a.weight",
            args="x, index, alpha",
            inputs="[torch.rand(4, 8), torch.arange(4), 0.5]",
            forward="return self.b(self.a(x))[index], x * alpha",
        )
    )
    subjects = {n.partition(":")[0] for n in traced.notes}
    assert subjects == {"mode", "weight initialisation", "tied", "integer inputs", "scalars", "tuples"}
    assert [p.aliases for p in traced.parameters if p.path == "a.weight"] == [("b.weight",)]
