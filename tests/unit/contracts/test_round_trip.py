"""A random small module: its contract round-trips, compiles, and tells enough to write a candidate that passes."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from plain_candidates import Misreading, Shape, Small, Step, candidate

from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.model.contract import Contract
from hiera_mcp.model.space import source_file

ContractOf = Callable[..., Contract]

GXX = shutil.which("g++") or ""
NVCC = shutil.which("nvcc") or ("/usr/local/cuda/bin/nvcc" if Path("/usr/local/cuda/bin/nvcc").exists() else "")
few = settings(
    max_examples=5,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],  # shrinking would evaluate a candidate hundreds of times
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

WIDTHS = (4, 6, 8)


def product(draw: st.DrawFn, shape: Shape) -> Step:
    width, last = draw(st.sampled_from(WIDTHS)), shape[-1]
    result = (*shape[:-1], width)
    return draw(
        st.sampled_from(
            [
                Step("product", f"nn.Linear({last}, {width}, bias={draw(st.booleans())})", "SELF(x)", result),
                Step("product", f"nn.Parameter(torch.rand({last}, {width}))", "x @ SELF", result),
                Step("product", f"nn.Parameter(torch.rand({width}, {last}))", "x @ SELF.t()", result),
            ]
        )
    )


def conv(draw: st.DrawFn, shape: Shape) -> Step:
    rank = len(shape) - 2
    groups, width = draw(st.sampled_from((1, 2, shape[1]))), shape[1] * draw(st.sampled_from((1, 2)))
    taps = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    stride = tuple(draw(st.integers(1, 2)) for _ in range(rank))
    padding = tuple(draw(st.integers(0, 2)) for _ in range(rank))
    size = tuple((s + 2 * p - k) // t + 1 for s, p, k, t in zip(shape[2:], padding, taps, stride, strict=True))
    made = (
        f"nn.Conv{rank}d({shape[1]}, {width}, {taps}, {stride}, {padding}, groups={groups}, bias={draw(st.booleans())})"
    )
    return Step("conv", made, "SELF(x)", (shape[0], width, *size))


def norm(draw: st.DrawFn, shape: Shape) -> Step:
    rank, eps = max(1, len(shape) - 2), draw(st.sampled_from((1e-5, 0.1)))
    mode = draw(st.sampled_from(("", ".eval()")))
    kinds = [
        Step("layer norm", f"nn.LayerNorm({shape[-1]}, eps={eps})", "SELF(x)", shape),
        Step("group norm", f"nn.GroupNorm(2, {shape[1]}, eps={eps})", "SELF(x)", shape),
        Step("batch norm", f"nn.BatchNorm{rank}d({shape[1]}, eps={eps}){mode}", "SELF(x)", shape),
    ]
    return draw(st.sampled_from(kinds))


def bare(draw: st.DrawFn, shape: Shape) -> Step:
    dim, sign = draw(st.integers(1, len(shape) - 1)), draw(st.sampled_from("+*"))
    after = "[:, None]" if dim == len(shape) - 2 else "[:, None, None]" if dim == len(shape) - 3 else ""
    return Step("bare", f"nn.Parameter(torch.rand({shape[dim]}))", f"x {sign} SELF{after}", shape)


def pointwise(draw: st.DrawFn, shape: Shape) -> Step:
    calls = {
        "relu": "torch.relu(x)",
        "residual": "x + torch.tanh(x)",
        "scalar": "x * a",
        "softmax": "torch.softmax(x, -1)",
    }
    kind = draw(st.sampled_from(sorted(calls)))
    return Step(kind, "", calls[kind], shape)


@st.composite
def smalls(draw: st.DrawFn) -> Small:
    """Tokens, rows, series or images; two to five steps; the last has parameters, so that no output is trivial."""
    start: Shape = draw(st.sampled_from([(6,), (3, 8), (2, 4, 7), (2, 4, 5, 6)]))
    tokens, shape, steps = len(start) == 1, start, list[Step]()
    if tokens:
        shape = (*start, 8)
        steps.append(Step("embedding", "nn.Embedding(5, 8)", "SELF(x)", shape))
    for _ in range(draw(st.integers(1, 4))):
        kinds = [norm, bare, pointwise, conv if len(shape) > 2 else product]
        steps.append(draw(st.sampled_from(kinds))(draw, shape))
        shape = steps[-1].shape
    softened = any(s.kind == "softmax" for s in steps)  # its mean is the same for all inputs
    if len(shape) > 2 and not softened and draw(st.booleans()):
        steps.append(Step("mean", "", f"x.mean({tuple(range(2, len(shape)))})", shape[:2]))
        shape = shape[:2]
    steps.append(product(draw, shape))
    return Small(start, tuple(steps), tokens, draw(st.booleans()))


IMAGE: Shape = (2, 4, 5, 6)
MIXED = Small(
    IMAGE,
    (
        Step("conv", "nn.Conv2d(4, 8, (3, 2), (2, 1), (2, 1), groups=2)", "SELF(x)", (2, 8, 4, 7)),
        Step("batch norm", "nn.BatchNorm2d(8).eval()", "SELF(x)", (2, 8, 4, 7)),
        Step("conv", "nn.Conv2d(8, 8, 3, dilation=(1, 2), groups=8, bias=False)", "SELF(x)", (2, 8, 2, 3)),
        Step("group norm", "nn.GroupNorm(4, 8)", "SELF(x)", (2, 8, 2, 3)),
        Step("bare", "nn.Parameter(torch.rand(8))", "x * SELF[:, None, None]", (2, 8, 2, 3)),
        Step("residual", "", "x + torch.tanh(x)", (2, 8, 2, 3)),
        Step("scalar", "", "x * a", (2, 8, 2, 3)),
        Step("mean", "", "x.mean((2, 3))", (2, 8)),
        Step("product", "nn.Linear(8, 6)", "SELF(x)", (2, 6)),
    ),
    pair=True,
)


@few
@example(MIXED)
@given(smalls())
def test_a_candidate_written_from_the_contract_alone_passes(
    workshop: Any, contract_of: ContractOf, small: Small
) -> None:
    contract = contract_of(small.text())
    again = Contract.model_validate_json(contract.model_dump_json())
    assert again == contract and again.id == contract.id
    assert set(render_files(again)) == set(render_files(contract))
    code = candidate(small, contract)
    seen = workshop.evaluate(contract, code)
    assert seen.status == "passed", f"{seen.reason}\n{small.text()}\n{code}"


def test_a_candidate_that_folds_what_the_contract_allows_passes(workshop: Any, contract_of: ContractOf) -> None:
    contract = contract_of(MIXED.text())
    code = candidate(MIXED, contract, fold=True)
    assert "V& v2 = v1;" in code
    seen = workshop.evaluate(contract, code)
    assert seen.status == "passed", f"{seen.reason}\n{code}"


LINEAR = Small((3, 8), (Step("product", "nn.Linear(8, 8)", "SELF(x)", (3, 8)),))
MATRIX = Small((3, 8), (Step("product", "nn.Parameter(torch.rand(8, 8))", "x @ SELF", (3, 8)),))
GROUPED = Small((2, 4, 7), (Step("conv", "nn.Conv1d(4, 8, 3, padding=1, groups=2)", "SELF(x)", (2, 8, 7)),))
NORMED = Small((6, 8), (Step("batch norm", "nn.BatchNorm1d(8)", "SELF(x)", (6, 8)),))


@pytest.mark.parametrize(
    ("small", "misread"),
    [
        (LINEAR, "transposed"),
        (MATRIX, "transposed"),
        (GROUPED, "ungrouped"),
        (NORMED, "batch statistics ignored"),
    ],
    ids=["linear transposed", "matrix transposed", "groups ignored", "mode ignored"],
)
def test_a_candidate_that_misreads_the_contract_does_not_pass(
    workshop: Any, contract_of: ContractOf, small: Small, misread: Misreading
) -> None:
    contract = contract_of(small.text())
    assert workshop.evaluate(contract, candidate(small, contract, misread)).status == "wrong_output"


def compiled(folder: Path, contract: Contract, command: list[str]) -> None:
    """The skeleton as it comes, with the header."""
    for name, text in render_files(contract).items():
        (folder / name).write_text(text)
    done = subprocess.run(
        [*command, "-c", source_file(contract.target), "-o", "out.o"],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not GXX, reason="g++ is not installed")
@few
@given(smalls())
def test_skeletons_of_random_modules_compile(contract_of: ContractOf, tmp_path: Path, small: Small) -> None:
    compiled(tmp_path, contract_of(small.text()), [GXX, "-Wall", "-Wextra", "-Werror"])


@pytest.mark.skipif(not NVCC, reason="nvcc is not installed")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_the_skeleton_compiles_for_each_gpu(contract_of: ContractOf, tmp_path: Path, arch: str) -> None:
    contract = contract_of(MIXED.text()).model_copy(update={"target": f"cuda:{arch}"})
    compiled(tmp_path, contract, [NVCC, f"-arch={arch}"])
