"""A plain function as a task: example inputs as text, and the Model that is made of it."""

from collections.abc import Callable
from keyword import iskeyword
from typing import Any, get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.contracts.adapter import adapt
from hiera_mcp.contracts.example import Drawn, Example, parse_example, render_example
from hiera_mcp.contracts.tolerance import check_comparison, default_tolerance, given_tolerance
from hiera_mcp.errors import RequestError, TaskError
from hiera_mcp.model.contract import Contract, DType
from hiera_mcp.model.work import Trace

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(lambda n: not iskeyword(n))
SHAPES = st.lists(st.integers(0, 10**6), max_size=4).map(tuple)
TENSORS = st.one_of(
    st.builds(Drawn, dtype=st.sampled_from(get_args(DType)), shape=SHAPES),
    st.builds(Drawn, dtype=st.sampled_from(["int64", "uint8"]), shape=SHAPES, below=st.integers(1, 10**6)),
)
PLAIN = st.one_of(
    st.integers(-(2**63), 2**63), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none(), st.text()
)


@given(NAMES, st.dictionaries(NAMES, st.one_of(TENSORS, PLAIN), min_size=1, max_size=5))
def test_what_is_written_is_read_back(name: str, values: dict[str, Any]) -> None:
    example = Example(name=name, values=values)
    assert parse_example(render_example(example)) == example


def test_a_case_needs_no_name_and_spaces_do_not_count() -> None:
    seen = parse_example(" x :float32[ 64,96 ],w: bfloat16[], n: int64[3]<96 , a: -0.5, s: 'a, b: c[]', ")
    assert seen.name == "default"
    assert seen.values == {
        "x": Drawn(dtype="float32", shape=(64, 96)),
        "w": Drawn(dtype="bfloat16", shape=()),
        "n": Drawn(dtype="int64", shape=(3,), below=96),
        "a": -0.5,
        "s": "a, b: c[]",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "names no argument"),
        ("x", "names no argument|cannot be read"),
        ("x float32[3]", "cannot be read"),
        ("x: float32[3", "cannot be read"),
        ("x: float3[3]", "`float3` is no type of a tensor. Valid: float64"),
        ("x: float32[-3]", "no whole number"),
        ("x: float32[2.5]", "no whole number"),
        ("x: float32[True]", "no whole number"),
        ("x: float32[n]", "no whole number"),
        ("x: float32[3] < 5", "a bound is for integers"),
        ("x: int64[3] < 0", "no bound of the form"),
        ("x: int64[3] > 5", "no bound of the form"),
        ("x: [1, 2]", "is a list"),
        ("x: open('f')", "neither a tensor nor a value"),
        ("x: 1, x: 2", "given twice"),
        ("'x': 1", "no argument's name"),
        ("**x", "no argument's name"),
        ("x: 1}, {y: 2", "names no argument"),
    ],
)
def test_what_does_not_follow_the_notation_is_refused_with_the_notation(text: str, expected: str) -> None:
    with pytest.raises(RequestError, match=expected):
        parse_example(text)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_example(text)
    except RequestError as error:
        assert str(error)


FUNCTION = """
import torch

def scaled(x, /, scaled, *, alpha=-0.5, bias=None, dims=(0, 1)):
    y = alpha * (x @ scaled)
    return y if bias is None else y + bias
"""
SMALL = "small = x: float32[4, 6], scaled: float32[6, 3]"
LARGE = "large = x: float32[8, 6], scaled: float32[6, 3], alpha: 2.0"


def run(text: str) -> dict[str, Any]:
    module: dict[str, Any] = {}
    exec(text, module)  # noqa: S102
    return module


def test_the_model_has_the_functions_arguments_and_gives_what_it_gives() -> None:
    module = run(adapt(FUNCTION, "scaled", [SMALL, LARGE]))
    cases = module["get_cases"]()
    assert [list(c[0].shape) for c in cases.values()] == [[4, 6], [8, 6]]
    assert [c[2:] for c in cases.values()] == [[-0.5, None], [2.0, None]]
    x, w, *rest = cases["large"]
    model = module["Model"](*module["get_init_inputs"]())
    assert torch.equal(model(x, w, *rest), 2.0 * (x @ w))
    assert [list(t.shape) for t in module["get_inputs"]()[:2]] == [[4, 6], [6, 3]]


def test_a_default_that_no_contract_can_hold_is_left_to_the_function() -> None:
    text = "def pick(x, dims=(0, 1), flag=True):\n    return x.sum(dims) if flag else x"
    module = run(adapt(text, "pick", ["x: float32[2, 3]"]))
    assert module["get_inputs"]()[1:] == [True]
    assert "get_cases" not in module
    assert module["Model"]()(torch.ones(2, 3), True) == 6


@pytest.mark.parametrize("own", ["get_inputs():\n    return [", "get_cases():\n    return {'only': ["])
def test_the_files_own_inputs_are_used_and_defaults_stay_defaults(own: str) -> None:
    text = (
        f"import torch\ndef twice(x, *, gain=2.0, more):\n    return gain * x + more\n\ndef {own}torch.ones(3), 3.0, 1"
    )
    module = run(adapt(text + ("]}" if "cases" in own else "]"), "twice"))
    assert module["Model"]()(*module["get_inputs"]()).tolist() == [4, 4, 4]


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ([], r"neither get_inputs\(\) nor get_cases\(\).*--inputs \"x: float32\[64, 64\], scaled: float32"),
        (["x: float32[3, 3]"], "there is none for scaled.*alpha: -0.5, bias: None"),
        (["x: float32[3], weight: 1"], r"no argument `weight`. Valid: x, scaled, alpha, bias, dims"),
        ([SMALL, SMALL], "Two cases have the same name"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_with_the_functions_own_names(inputs: list[str], expected: str) -> None:
    with pytest.raises(RequestError, match=expected):
        adapt(FUNCTION, "scaled", inputs)


def test_a_missing_function_and_a_model_of_its_own_are_said() -> None:
    with pytest.raises(RequestError, match=r"no function `other` at its top level\. Valid: scaled"):
        adapt(FUNCTION, "other", [SMALL])
    with pytest.raises(TaskError, match="has a `Model` already"):
        adapt("class Model: ...\ndef f(x): ...", "f", ["x: float32[1]"])
    with pytest.raises(TaskError, match="line 1"):
        adapt("def f(", "f", ["x: float32[1]"])


def test_integers_stay_below_their_bound(trace: Callable[..., Trace]) -> None:
    text = "def pick(table, index):\n    return table[index]"
    inputs = ["table: float32[96, 4], index: int64[64] < 96, "]
    traced = trace(adapt(text, "pick", inputs))
    assert traced.forward_order == ("table", "index")
    assert int(run(adapt(text, "pick", inputs))["get_inputs"]()[1].max()) > 1


@pytest.mark.parametrize("precision", ["float16", "bfloat16", "float64"])
def test_a_functions_contract_has_its_names_and_precision(contract_of: Callable[..., Contract], precision: str) -> None:
    contract = contract_of(adapt(FUNCTION, "scaled", [SMALL]), precision=precision)
    case = contract.cases[0]
    assert case.forward_order == ("x", "scaled", "alpha", "bias")
    assert {t.dtype for t in (*case.inputs, *case.outputs)} == {precision}
    assert [(s.name, s.value) for s in case.scalars] == [("alpha", -0.5), ("bias", None)]


def test_a_given_tolerance_replaces_the_figures_that_are_given_and_enters_the_identity(linear_relu: Contract) -> None:
    default = default_tolerance("float32")
    assert given_tolerance(default, None, None, None) is default
    seen = given_tolerance(default, 1e-3, None, "close")
    assert (seen.rtol, seen.atol, seen.source, seen.comparison) == (1e-3, 1e-4, "given", "close")
    assert linear_relu.model_copy(update={"tolerance": seen}).id != linear_relu.id


@pytest.mark.parametrize(("rtol", "atol"), [(-1.0, None), (float("nan"), None), (None, float("inf")), (0.0, 0.0)])
def test_figures_that_are_no_tolerance_are_refused(rtol: float | None, atol: float | None) -> None:
    with pytest.raises(RequestError, match="no tolerance"):
        given_tolerance(default_tolerance("float32"), rtol, atol, None)


def test_a_comparison_that_the_file_lacks_is_refused_with_its_functions() -> None:
    check_comparison(FUNCTION, "scaled")
    with pytest.raises(RequestError, match=r"no function `close`.*def close\(outputs, expected\).*Valid: scaled"):
        check_comparison(FUNCTION, "close")
