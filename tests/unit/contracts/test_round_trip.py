"""A random small module: its contract round-trips, compiles, and tells enough to write a candidate that passes.

The candidate is plain C++ loops. Which stride belongs to which index, the geometry of a convolution, eps, groups and the mode
of a norm are read from the texts of the contract's `Parameter` entries, as a reader would do it.
"""

import math
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.model.contract import Contract, Parameter
from hiera_mcp.model.space import source_file

Shape = tuple[int, ...]
Writer = Callable[["Reader", int, "Step", Shape], str]
Misreading = Literal["", "transposed", "ungrouped", "batch statistics ignored"]


@dataclass(frozen=True)
class Step:
    """One step of a module.

    Args:
        kind: one of the keys of `_WRITERS`.
        init: what the constructor makes, under the name `self.sN`; empty: nothing.
        call: the expression of `x` that forward() computes.
        shape: of its result.
    """

    kind: str
    init: str
    call: str
    shape: Shape


@dataclass(frozen=True)
class Small:
    """A module: an input of a shape (integers below 5 when `tokens`), steps, and whether it returns a second output."""

    shape: Shape
    steps: tuple[Step, ...]
    tokens: bool = False
    pair: bool = False

    def text(self) -> str:
        """The task's text. Parameters and buffers are drawn so that all of them matter."""
        made = [f"self.s{n} = {s.init.replace('SELF', f's{n}')}" for n, s in enumerate(self.steps) if s.init]
        calls = [f"x = {s.call.replace('SELF', f'self.s{n}')}" for n, s in enumerate(self.steps)]
        drawn = f"torch.randint(0, 5, {self.shape})" if self.tokens else f"torch.randn{self.shape}"
        body = "\n".join(f"        {line}" for line in [*made, *_DRAWS])
        forward = "\n".join(f"        {line}" for line in [*calls, "return x, x.amax(-1)" if self.pair else "return x"])
        return (
            "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\nclass Model(nn.Module):\n"
            f"    def __init__(self):\n        super().__init__()\n{body}\n    def forward(self, x, a):\n{forward}\n\n"
            f"def get_inputs():\n    return [{drawn}, 1.5]\n\ndef get_init_inputs():\n    return []\n"
        )


_DRAWS = (
    "for t in self.parameters():",
    "    nn.init.normal_(t)",
    "for t in self.buffers():",
    "    if t.is_floating_point():",
    "        t.uniform_(0.5, 1.5)",
)


@dataclass(frozen=True)
class Told:
    """What a contract tells of one parameter."""

    p: Parameter
    misread: Misreading = ""

    @property
    def field(self) -> str:
        return f"params->{self.p.name}"

    def strides(self) -> Mapping[str, int]:
        """Name of a dimension, as the layout calls it → its stride. `*kernel` becomes kernel0, kernel1, …"""
        named = self.p.layout[1 : self.p.layout.index("]")].split(", ")
        strides = list(self.p.strides)
        if self.misread == "transposed":
            strides[0], strides[1] = strides[1], strides[0]
        if named[-1] == "*kernel":
            named[-1:] = [f"kernel{n}" for n in range(len(strides) - len(named) + 1)]
        return dict(zip(named, strides, strict=True))

    def numbers(self, word: str) -> tuple[int, ...]:
        """`stride 2 × 1` → (2, 1)."""
        told = re.search(rf"\b{word} (\d+(?: × \d+)*)", "; ".join(self.p.constraints))
        assert told, f"{self.p.path} does not say its {word}: {self.p.constraints}"
        return tuple(int(n) for n in told[1].split(" × "))

    def eps(self) -> float:
        told = re.search(r"\beps ([\d.e-]+)", "; ".join(self.p.constraints))
        assert told, f"{self.p.path} does not say its eps: {self.p.constraints}"
        return float(told[1])

    def along(self) -> int:
        """`added along dimension 1 of [4, 8]` → 1."""
        told = re.search(r"along dimension (\d+) of", self.p.layout)
        assert told, f"{self.p.path} does not say along which dimension: {self.p.layout}"
        return int(told[1])

    def own_statistics(self) -> bool:
        """Does the norm that reads it use the statistics of its input?"""
        return "its own input" in self.p.must_not_precompute and self.misread != "batch statistics ignored"


@dataclass(frozen=True)
class Reader:
    """A module's contract, for one who writes a candidate from it."""

    contract: Contract
    misread: Misreading = ""

    def told(self, path: str) -> Told | None:
        found = next((p for p in self.contract.parameters if p.path == path), None)
        return Told(found, self.misread) if found else None

    def one(self, path: str) -> Told:
        found = self.told(path)
        assert found, f"{path} is not in the contract"
        return found


def candidate(small: Small, contract: Contract, misread: Misreading = "") -> str:
    """A candidate from a contract's parameters and the list of steps."""
    reader = Reader(contract, misread)
    lines = [_fill("v0", small.shape, f"inputs->{contract.cases[0].inputs[0].name}[{_at(small.shape)}]")]
    shape = small.shape
    for n, step in enumerate(small.steps):
        lines.append(_WRITERS[step.kind](reader, n, step, shape))
        shape = step.shape
    value = f"v{len(small.steps)}"
    outputs = [o.name for o in contract.cases[0].outputs]
    lines.append(f"for (long i = 0; i < {math.prod(shape)}; ++i) outputs->{outputs[0]}[i] = (float){value}[i];")
    if small.pair:
        rows, last = math.prod(shape[:-1]), shape[-1]
        lines.append(
            f"for (long r = 0; r < {rows}; ++r) {{ double m = {value}[r * {last}]; for (long j = 1; j < {last}; ++j) "
            f"m = std::max(m, {value}[r * {last} + j]); outputs->{outputs[1]}[r] = (float)m; }}"
        )
    body = "\n".join(lines)
    return (
        '#include "contract.h"\n#include <algorithm>\n#include <cmath>\n#include <vector>\ntypedef std::vector<double> V;\n'
        'extern "C" int hiera_run(const hiera_inputs* inputs, const hiera_params* params, const hiera_outputs* outputs, '
        f"void*) {{\n(void)params;\n{body}\nreturn 0;\n}}\n"
    )


def _index(shape: Shape) -> tuple[str, ...]:
    return tuple(f"i{d}" for d in range(len(shape)))


def _at(shape: Shape, index: Sequence[str] = ()) -> str:
    """The offset of an element of a dense tensor."""
    names = index or _index(shape)
    return " + ".join(f"({i}) * {math.prod(shape[d + 1 :])}L" for d, i in enumerate(names)) or "0"


def _loops(shape: Shape, body: str, index: Sequence[str] = ()) -> str:
    names = index or _index(shape)
    heads = "".join(f"for (long {i} = 0; {i} < {size}; ++{i}) " for i, size in zip(names, shape, strict=True))
    return f"{heads}{{ {body} }}"


def _fill(value: str, shape: Shape, expression: str, before: str = "") -> str:
    return f"V {value}({math.prod(shape)}); " + _loops(shape, f"{before} {value}[{_at(shape)}] = {expression};")


def _pointwise(expression: str) -> Writer:
    def write(reader: Reader, n: int, step: Step, shape: Shape) -> str:
        return _fill(f"v{n + 1}", shape, expression.replace("X", f"v{n}[{_at(shape)}]"))

    return write


def _product(reader: Reader, n: int, step: Step, shape: Shape) -> str:
    """linear, and a matrix product with a bare parameter."""
    weight = reader.told(f"s{n}.weight") or reader.one(f"s{n}")
    bias = reader.told(f"s{n}.bias")
    strides = weight.strides()
    out, inner = (next(s for k, s in strides.items() if k.startswith(word)) for word in ("out", "in"))
    last = f"i{len(shape) - 1}"
    x = _at(shape, [*_index(shape)[:-1], "k"])
    start = f"{bias.field}[{last}]" if bias else "0"
    total = f"double t = {start}; for (long k = 0; k < {shape[-1]}; ++k) t += v{n}[{x}] * {weight.field}[{last} * {out} + k * {inner}];"
    return _fill(f"v{n + 1}", step.shape, "t", total)


def _conv(reader: Reader, n: int, step: Step, shape: Shape) -> str:
    weight, bias = reader.one(f"s{n}.weight"), reader.told(f"s{n}.bias")
    stride, padding, dilation = (weight.numbers(word) for word in ("stride", "padding", "dilation"))
    (groups,) = weight.numbers("groups")
    each = step.shape[1] // groups
    reach = shape[1] // groups
    taps = weight.p.shape[2:]
    strides = weight.strides()
    first = "0" if weight.misread == "ungrouped" else f"(i1 / {each}) * {reach}"
    places = [f"i{d + 2} * {stride[d]} - {padding[d]} + k{d} * {dilation[d]}" for d in range(len(taps))]
    inside = " && ".join(f"{p} >= 0 && {p} < {shape[d + 2]}" for d, p in enumerate(places))
    w = " + ".join(
        [f"i1 * {strides['out_channels']}", f"c * {strides['in_channels / groups']}"]
        + [f"k{d} * {strides[f'kernel{d}']}" for d in range(len(taps))]
    )
    x = _at(shape, ["i0", f"{first} + c", *places])
    inner = _loops(
        (reach, *taps),
        f"if ({inside}) t += v{n}[{x}] * {weight.field}[{w}];",
        ["c", *(f"k{d}" for d in range(len(taps)))],
    )
    return _fill(f"v{n + 1}", step.shape, "t", f"double t = {f'{bias.field}[i1]' if bias else '0'}; {inner}")


def _norm_over(reader: Reader, n: int, shape: Shape, same: str, affine: str) -> str:
    """Normalise by the elements j… for which `same` holds; `affine` is the place in weight and bias."""
    weight, bias = reader.one(f"s{n}.weight"), reader.one(f"s{n}.bias")
    others = tuple(f"j{d}" for d in range(len(shape)))
    x = f"v{n}[{_at(shape, others)}]"
    sums = _loops(shape, f"if ({same}) {{ m += {x}; q += {x} * {x}; ++c; }}", others)
    before = f"double m = 0, q = 0; long c = 0; {sums} m /= c; q = q / c - m * m;"
    scaled = f"(v{n}[{_at(shape)}] - m) / std::sqrt(q + {weight.eps()})"
    return _fill(f"v{n + 1}", shape, f"{scaled} * {weight.field}[{affine}] + {bias.field}[{affine}]", before)


def _layer_norm(reader: Reader, n: int, step: Step, shape: Shape) -> str:
    last = len(shape) - 1
    same = " && ".join(f"j{d} == i{d}" for d in range(last)) or "true"
    return _norm_over(reader, n, shape, same, f"i{last}")


def _group_norm(reader: Reader, n: int, step: Step, shape: Shape) -> str:
    (groups,) = reader.one(f"s{n}.weight").numbers("num_groups")
    each = shape[1] // groups
    return _norm_over(reader, n, shape, f"j0 == i0 && j1 / {each} == i1 / {each}", "i1")


def _batch_norm(reader: Reader, n: int, step: Step, shape: Shape) -> str:
    weight, bias = reader.one(f"s{n}.weight"), reader.one(f"s{n}.bias")
    if weight.own_statistics():
        return _norm_over(reader, n, shape, "j1 == i1", "i1")
    mean, var = reader.one(f"s{n}.running_mean"), reader.one(f"s{n}.running_var")
    scaled = f"(v{n}[{_at(shape)}] - {mean.field}[i1]) / std::sqrt({var.field}[i1] + {weight.eps()})"
    return _fill(f"v{n + 1}", shape, f"{scaled} * {weight.field}[i1] + {bias.field}[i1]")


def _bare(reader: Reader, n: int, step: Step, shape: Shape) -> str:
    """A bare parameter that is added or multiplied: which of both, and along what, is the contract's to say."""
    told = reader.one(f"s{n}")
    sign = {"addend": "+", "scale": "*"}[told.p.role]
    return _fill(f"v{n + 1}", shape, f"v{n}[{_at(shape)}] {sign} {told.field}[i{told.along()}]")


def _embedding(reader: Reader, n: int, step: Step, shape: Shape) -> str:
    weight = reader.one(f"s{n}.weight")
    strides = weight.strides()
    row = f"(long)v{n}[{_at(shape)}] * {strides['num_embeddings']}"
    column = f"i{len(shape)} * {strides['embedding_dim']}"
    return _fill(f"v{n + 1}", step.shape, f"{weight.field}[{row} + {column}]")


def _softmax(reader: Reader, n: int, step: Step, shape: Shape) -> str:
    x = f"v{n}[{_at(shape, [*_index(shape)[:-1], 'k'])}]"
    over = f"for (long k = 0; k < {shape[-1]}; ++k)"
    before = f"double m = -1e300, t = 0; {over} m = std::max(m, {x}); {over} t += std::exp({x} - m);"
    return _fill(f"v{n + 1}", shape, f"std::exp(v{n}[{_at(shape)}] - m) / t", before)


def _mean(reader: Reader, n: int, step: Step, shape: Shape) -> str:
    """Over all dimensions but the first two."""
    inner = shape[2:]
    names = [f"k{d}" for d in range(len(inner))]
    total = _loops(inner, f"t += v{n}[{_at(shape, ['i0', 'i1', *names])}];", names)
    return _fill(f"v{n + 1}", step.shape, f"t / {math.prod(inner)}", f"double t = 0; {total}")


_WRITERS: Mapping[str, Writer] = {
    "product": _product,
    "conv": _conv,
    "layer norm": _layer_norm,
    "group norm": _group_norm,
    "batch norm": _batch_norm,
    "bare": _bare,
    "embedding": _embedding,
    "softmax": _softmax,
    "mean": _mean,
    "relu": _pointwise("std::max(0.0, X)"),
    "residual": _pointwise("X + std::tanh(X)"),
    "scalar": _pointwise("X * HIERA_SCALAR_a"),
}


GXX = shutil.which("g++") or ""
NVCC = shutil.which("nvcc") or ("/usr/local/cuda/bin/nvcc" if Path("/usr/local/cuda/bin/nvcc").exists() else "")
few = settings(
    max_examples=5,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],  # shrinking would evaluate a candidate hundreds of times
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
    if len(shape) > 2 and draw(st.booleans()):
        steps.append(Step("mean", "", f"x.mean({tuple(range(2, len(shape)))})", shape[:2]))
        shape = shape[:2]
    steps.append(product(draw, shape))
    return Small(start, tuple(steps), tokens, draw(st.booleans()))


@few
@given(smalls())
def test_a_candidate_written_from_the_contract_alone_passes(workshop: Any, small: Small) -> None:
    contract = workshop.contract(small.text())
    again = Contract.model_validate_json(contract.model_dump_json())
    assert again == contract and again.id == contract.id
    assert set(render_files(again)) == set(render_files(contract))
    code = candidate(small, contract)
    seen = workshop.evaluate(contract, code)
    assert seen.status == "passed", f"{seen.reason}\n{small.text()}\n{code}"


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
def test_a_candidate_that_misreads_the_contract_does_not_pass(workshop: Any, small: Small, misread: Misreading) -> None:
    contract = workshop.contract(small.text())
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


MIXED = Small(
    (2, 4, 5, 6),
    (
        Step("conv", "nn.Conv2d(4, 8, 3, groups=2)", "SELF(x)", (2, 8, 3, 4)),
        Step("batch norm", "nn.BatchNorm2d(8)", "SELF(x)", (2, 8, 3, 4)),
        Step("bare", "nn.Parameter(torch.rand(8))", "x * SELF[:, None, None]", (2, 8, 3, 4)),
    ),
    pair=True,
)


@pytest.mark.skipif(not GXX, reason="g++ is not installed")
@settings(few, max_examples=4)
@given(smalls())
def test_skeletons_of_random_modules_compile(
    contract_of: Callable[..., Contract], tmp_path: Path, small: Small
) -> None:
    compiled(tmp_path, contract_of(small.text()), [GXX, "-Wall", "-Wextra", "-Werror"])


@pytest.mark.skipif(not NVCC, reason="nvcc is not installed")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_the_skeleton_compiles_for_each_gpu(contract_of: Callable[..., Contract], tmp_path: Path, arch: str) -> None:
    contract = contract_of(MIXED.text()).model_copy(update={"target": f"cuda:{arch}"})
    compiled(tmp_path, contract, [NVCC, f"-arch={arch}"])
