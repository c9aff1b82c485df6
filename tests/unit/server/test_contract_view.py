"""What an agent sees of a contract: never more than fits, never less than a candidate needs, nothing cut silently."""

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import MCPError

from hiera_mcp.contracts.summary import LISTS, degeneracy_text, tolerance_text
from hiera_mcp.model.contract import (
    Case,
    Chain,
    Contract,
    Coverage,
    Degeneracy,
    Floor,
    Operator,
    Parameter,
    Reduction,
    Reuse,
    Scalar,
    TensorSpec,
)
from hiera_mcp.model.run import JobState
from hiera_mcp.model.work import Trace, TracedOperator, TracedParameter
from hiera_mcp.tools.budget import Section, cut, fit, line_tokens, tokens
from hiera_mcp.tools.contract_build import ContractResult
from hiera_mcp.tools.contract_view import contract_view
from hiera_mcp.tools.views import ContractView

LIMIT = 3000
"""Tokens of a whole tool result (issue 3, point 8)."""
FILES = ["contract.h", "contract.json", "cpp_source.cpp", "cuda_source.cu", "groundtruth.py", "torch_demo.py"]


def changed(contract: Contract, **update: Any) -> Contract:
    return contract.model_copy(update=update)


def parameter(path: str, shape: tuple[int, ...] = (4, 4), **update: Any) -> Parameter:
    row: dict[str, Any] = {"path": path, "name": path.replace(".", "_"), "shape": shape, "dtype": "float32"}
    told: dict[str, Any] = {"role": "weight", "layout": "[out, in], row-major", "consumed_by": "Linear fc"}
    return Parameter(**(row | told | update))


def result_text(view: ContractView) -> str:
    """The text of the tool's result, as the SDK makes it."""
    step = f"hiera_run_start(contract_id='{view.contract_id}')" + " and more words" * 10
    result = ContractResult(state=JobState.DONE, job_id="j_0123456789", next_step=step, contract=view)
    return result.model_dump_json(indent=2)


def test_the_view_says_what_must_be_written(contract: Contract) -> None:
    view = contract_view(contract, ["contract.h"])
    assert view.source_file == "cpu_source.cpp"
    assert "int hiera_run(" in view.interface and "const float* weight; /* [4, 4] float32 */" in view.interface
    assert view.parameters == ("weight: float32[4, 4] weight: [out, in], row-major",)
    assert view.cases == ("case0: x: float32[8, 4] -> y: float32[8, 4]",)
    assert view.files == {"contract.h": f"hiera://contracts/{contract.id}/files/contract.h"}


def test_parameters_of_one_meaning_are_one_line_with_their_count_and_range_of_shapes(contract: Contract) -> None:
    many = [parameter(f"blocks.{i}.fc.weight", (8 * (i + 1), 4)) for i in range(500)]
    view = contract_view(changed(contract, parameters=(*many, parameter("head.weight"))), [])
    assert view.parameters == (
        "float32 weight: [out, in], row-major. Of: blocks.*.fc.weight ×500 [8..4000, 4], head_weight [4, 4]",
    )


def test_a_number_within_a_name_keeps_parameters_apart(contract: Contract) -> None:
    both = (parameter("conv1.weight"), parameter("conv2.weight"))
    assert (
        "Of: conv1_weight [4, 4], conv2_weight" in contract_view(changed(contract, parameters=both), []).parameters[0]
    )


def test_what_is_left_out_is_counted_and_its_address_given(contract: Contract) -> None:
    many = tuple(parameter(f"p{i}.weight", role=f"role number {i}") for i in range(300))
    view = contract_view(changed(contract, parameters=many), [])
    address = f"hiera://contracts/{view.contract_id}/lists/parameters"
    said = re.fullmatch(rf"… and (\d+) more kinds: {address}", view.parameters[-1])
    assert said and int(said[1]) == 300 - (len(view.parameters) - 1)
    assert f"{address.replace('lists/parameters', 'files/contract.h')} */\n}} hiera_params;" in view.interface


def big(base: Contract, n: int, word: str, name: str) -> Contract:
    """A contract with `n` of everything; texts are `word`, names of tensors hold `name`."""
    shape = (1 << 20,) * 5
    x, noise, y = (TensorSpec(name=f"{p}_{name}", shape=shape, dtype="bfloat16") for p in ("x", "noise", "y"))
    case = Case(
        name="first",
        inputs=(x, noise),
        scalars=tuple(Scalar(name=f"s{i}", value=word) for i in range(n % 50)),
        outputs=(y,),
        forward_order=(x.name,),
        draws=(noise.name,),
    )
    operator = Operator(name=word, kind="gemm", count=3, flops=1e12, bytes=1e9, share=0.01)
    lists = {
        "operators": operator,
        "chains": Chain(operators=(word,) * 9, anchor=word, length=9, saved_bytes=1e9, share=0.1),
        "reductions": Reduction(operator=word, count=1, extent=9, results=9, contiguous=True),
        "reuse": Reuse(tensor=word, readers=2, nbytes=9, uses=0.5),
        "libraries": Coverage(library=word, operators=(word,), share=0.5, how=word),
    }
    many = {key: (one,) * n for key, one in lists.items()} | {"tensor_core_reason": word * 9}
    floor = base.floor.model_copy(update={"device": word, "arithmetic": word * 9, "basis": word * 9})
    return changed(
        base,
        parameters=tuple(
            parameter(f"{name}.x{i}.{'weight' if i % 3 else 'bias'}", (i + 1, 7), role=f"{word} {i % 97}")
            for i in range(n)
        ),
        cases=tuple(case.model_copy(update={"name": f"case{i}"}) for i in range(1 + n % 100)),
        features=base.features.model_copy(update=many),
        floor=floor,
        floors=(floor,) * 30,
        degeneracy=Degeneracy(measured=True, zeros_pass=True, remedy=word, reason=word * 3, sizes=word),
        notes=(word,) * n,
    )


@given(
    n=st.sampled_from([0, 1, 7, 60, 1000]),
    word=st.text(min_size=1, max_size=40).flatmap(lambda w: st.sampled_from([w, w * 20, w * 200])),
    name=st.from_regex(r"m[a-z_0-9]{1,60}", fullmatch=True),
    target=st.sampled_from(["cpu", "cuda:sm_90a"]),
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_largest_contract_stays_below_the_limit_and_holds_the_essentials(
    contract: Contract, n: int, word: str, name: str, target: str
) -> None:
    huge = changed(big(contract, n, word, name), target=target)
    view = contract_view(huge, FILES)
    assert tokens(result_text(view)) < LIMIT
    first = huge.cases[0]
    assert all(f"* {t.name};" in view.interface for t in (*first.inputs, *first.outputs))
    assert "int hiera_run(" in view.interface and "size_t hiera_workspace_bytes(void);" in view.interface
    assert view.cases[0].startswith("case0: ")
    assert view.degeneracy.startswith("degenerate: zeros would pass")
    shown = {"cases": view.cases, "notes": view.notes} | {k: getattr(view.features, k) for k in ("operators", "chains")}
    for key, lines in shown.items():
        whole = LISTS[key](huge)
        said = f"… and {len(whole) - len(lines) + 1} more: hiera://contracts/{view.contract_id}/lists/{key}"
        assert len(lines) == len(whole) or lines[-1] == said


lines = st.lists(st.text(max_size=60), max_size=30)


@given(
    st.lists(st.tuples(lines, st.integers(0, 9), st.integers(0, 20)), min_size=1, max_size=6), st.integers(200, 2000)
)
def test_fitted_sections_stay_within_the_budget_and_say_what_they_leave_out(
    drawn: list[tuple[list[str], int, int]], budget: int
) -> None:
    sections = [Section(str(n), text, least, good, "there") for n, (text, least, good) in enumerate(drawn)]
    shown = fit(sections, budget)
    out = [cut(s, shown[s.name]) for s in sections]
    assert sum(line_tokens(line) for text in out for line in text) <= budget
    for section, text in zip(sections, out, strict=True):
        left = len(section.lines) - shown[section.name]
        assert not left or text[-1] == f"… and {left} more: there"


def test_a_section_that_is_wanted_more_gets_its_least_before_another_gets_all() -> None:
    sections = [Section("first", ["a"] * 100, 2, 2, "x"), Section("second", ["b"] * 100, 2, 50, "y")]
    shown = fit(sections, 120)
    assert shown["first"] == 2 and 2 < shown["second"] < 50


@pytest.mark.parametrize(
    "text", ["float32[1920, 128, 3, 3]", "hiera_workspace_bytes", "×98 → µs · …", "xqzjkv wqxz" * 9, '{}[]()"\\' * 9]
)
def test_tokens_are_rather_over_than_underestimated(text: str) -> None:
    assert tokens(text) >= len(text.encode()) / 3 - 1
    assert tokens(text * 10) >= 9 * tokens(text)


def test_tolerance_and_comparison_are_told_in_words(contract: Contract) -> None:
    told = tolerance_text(contract.tolerance)
    assert "0.0001·rms(oracle) + 0.0001·|oracle|" in told and "TF32 is not allowed" in told
    given_ = contract.tolerance.model_copy(update={"source": "given", "comparison": "close_enough"})
    assert "function close_enough" in tolerance_text(given_)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (Degeneracy(measured=False, reason="too large"), "not measured: too large"),
        (Degeneracy(measured=True, zeros_pass=False), "none: "),
        (Degeneracy(measured=True, zeros_pass=True, constant_passes=True), "degenerate: zeros, a constant would pass"),
        (Degeneracy(measured=True, zeros_pass=True, remedy="signed #3"), "tells them apart by the trials signed #3"),
        (Degeneracy(measured=True, zeros_pass=True, unverifiable=True), "Candidates are not judged"),
    ],
)
def test_degeneracy_is_told_with_what_follows_from_it(found: Degeneracy, told: str) -> None:
    assert told in degeneracy_text(found)


def test_floors_of_other_devices_are_one_line(contract: Contract) -> None:
    other: Floor = contract.floor.model_copy(update={"device": "H200", "seconds": 2e-6})
    assert contract_view(changed(contract, floors=(other, other)), []).floor.elsewhere == (
        "H200 2 µs (memory), H200 2 µs (memory)"
    )


def test_scalars_and_draws_are_told(contract: Contract) -> None:
    scalars = (Scalar(name="eps", value=1e-5), Scalar(name="mask", value=None))
    case = contract.cases[0].model_copy(update={"scalars": scalars, "draws": ("x",)})
    told = contract_view(changed(contract, cases=(case,)), []).handling
    assert told[:2] == (
        "scalar eps = 1e-05: the constant HIERA_SCALAR_eps",
        "scalar mask is None: HIERA_SCALAR_mask_IS_NONE",
    )
    assert "x: random numbers that forward() draws" in told[2]


def a_large_trace() -> Trace:
    """2,000 parameters of many modules and as many operators."""
    parameters = tuple(
        TracedParameter(
            path=f"blocks.{n}.module{n % 40}.weight",
            shape=(n + 1, 3),
            dtype="float32",
            buffer=bool(n % 2),
            module_path=f"blocks.{n}.module{n % 40}",
            module_type=f"Own{n % 40}",
            module_repr="Own()",
        )
        for n in range(2000)
    )
    operators = tuple(
        TracedOperator(name=f"aten.op{n}", flops=1e6 * n, bytes_read=1000, bytes_written=1000, is_view=False)
        for n in range(300)
    )
    x, out = (TensorSpec(name=n, shape=(8, 8), dtype="float32") for n in ("x", "out"))
    return Trace(
        inputs=(x,),
        scalars=(),
        forward_order=("x",),
        outputs=(out,),
        parameters=parameters,
        operators=operators,
        trivial_outputs=None,
        notes=tuple(f"note {n}: something about forward()" for n in range(50)),
    )


async def test_what_the_tool_and_the_job_answer_is_short_in_text_and_in_data(bench: Any, mode: str) -> None:
    async def trace(*_: object) -> Trace:
        return a_large_trace()

    bench.executor.trace = trace
    async with bench.session(mode) as call:
        result = await call.client.call_tool("hiera_contract_build", {"source": "class Model: pass", "target": "cpu"})
        text = result.content[0].text
        assert json.loads(text) == result.structured_content
        assert tokens(text) < LIMIT and tokens(json.dumps(result.structured_content)) < LIMIT
        view = result.structured_content["contract"]
        job = await call.client.call_tool("hiera_job", {"job_id": result.structured_content["job_id"]})
        assert tokens(job.content[0].text) < LIMIT
        addresses = re.findall(r"hiera://contracts/c_\w+/\w+/[\w.]+", text)
        pages = {a: (await call.client.read_resource(a)).contents[0].text for a in set(addresses)}
    assert len(pages[f"hiera://contracts/{view['contract_id']}/lists/parameters"].splitlines()) == 2000
    assert len(pages[f"hiera://contracts/{view['contract_id']}/lists/operators"].splitlines()) == 300
    assert pages[f"hiera://contracts/{view['contract_id']}/files/contract.h"].count("blocks_") > 2000


async def test_an_unknown_list_is_answered_with_the_known_ones(bench: Any) -> None:
    async with bench.session() as call:
        with pytest.raises(MCPError, match="Valid: cases, chains"):
            await call.client.read_resource(f"hiera://contracts/{call.contract_id}/lists/nothing")
