"""Small modules as lists of steps, and candidates written from nothing but what their contract says of its parameters.

A candidate is plain C++ loops. Which stride belongs to which index, the geometry of a convolution, eps, groups, the mode of a
norm and what may be folded are read from the texts of the contract's `Parameter` entries, as a reader would do it.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hiera_mcp.model.contract import Contract, Parameter

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
    fold: bool = False
    """Fold norms into convolutions where the contract allows it."""

    def told(self, path: str) -> Told | None:
        found = next((p for p in self.contract.parameters if p.path == path), None)
        return Told(found, self.misread) if found else None

    def one(self, path: str) -> Told:
        found = self.told(path)
        assert found, f"{path} is not in the contract"
        return found


def candidate(small: Small, contract: Contract, misread: Misreading = "", fold: bool = False) -> str:
    """A candidate from a contract's parameters and the list of steps."""
    reader = Reader(contract, misread, fold)
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
    scale, shift = folded(reader, n, "i1") if reader.fold else ("1.0", "0.0")
    start = f"double t = {f'{bias.field}[i1]' if bias else '0'}; {inner}"
    return _fill(f"v{n + 1}", step.shape, f"t * {scale} + {shift}", start)


def _norm_over(reader: Reader, n: int, shape: Shape, same: str, affine: str) -> str:
    """Normalise by the elements j… for which `same` holds; `affine` is the place in weight and bias."""
    weight, bias = reader.one(f"s{n}.weight"), reader.one(f"s{n}.bias")
    others = tuple(f"j{d}" for d in range(len(shape)))
    x = f"v{n}[{_at(shape, others)}]"
    sums = _loops(shape, f"if ({same}) {{ m += {x}; q += {x} * {x}; ++c; }}", others)
    before = f"double m = 0, q = 0; long c = 0; {sums} m /= c; q = q / c - m * m;"
    scaled = f"(v{n}[{_at(shape)}] - m) / std::sqrt(q + {weight.eps()})"
    return _fill(f"v{n + 1}", shape, f"{scaled} * {weight.field}[{affine}] + {bias.field}[{affine}]", before)


def folded(reader: Reader, n: int, channel: str) -> tuple[str, str]:
    """Scale and shift of an output channel by the norm after step n, where the contract allows to fold it in."""
    may = reader.one(f"s{n}.weight").p.may_precompute
    if f"s{n + 1} folded in" not in may:
        return "1.0", "0.0"
    told = reader.one(f"s{n + 1}.weight").p.may_precompute
    rule = re.search(r"scale = (.*?), shift = (.*?);", told)
    assert rule, told
    fields = {
        k: f"params->{reader.one(f's{n + 1}.{k}').p.name}[{channel}]"
        for k in ("weight", "bias", "running_mean", "running_var")
    }
    terms = [re.sub(r"weight|bias|running_mean|running_var", lambda m: fields[m[0]], text) for text in rule.groups()]
    scale = terms[0].replace("sqrt", "std::sqrt")
    return f"({scale})", f"({terms[1].replace('·', '*').replace('scale', f'({scale})')})"


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
    if reader.fold and f"s{n} folded in" in reader.one(f"s{n - 1}.weight").p.may_precompute:
        return f"V& v{n + 1} = v{n};"
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
