"""What the tensors of torch's own modules mean, with the module's numbers.

Rules are keyed by the owning module's type as PyTorch names it; layouts follow the PyTorch documentation of torch.nn.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from hiera_mcp.model.work import TracedParameter


@dataclass(frozen=True)
class Rule:
    """What is known of one tensor; the fields are those of `Parameter`."""

    role: str
    layout: str
    constraints: tuple[str, ...] = ()
    may: str = ""
    must_not: str = ""


OWN_STATISTICS = "a fold into what comes before the norm: its statistics are those of its own input in each call"
"""Of every norm but those that use running statistics."""

Maker = Callable[[TracedParameter], Rule | None]

RELAID = "a transposed, padded or re-tiled copy; a copy in another type only where the tolerance holds"


def module_rule(p: TracedParameter) -> Rule | None:
    """The meaning of a tensor of one of torch's modules; None: of another module, or not of the shape that torch gives it."""
    leaf = p.path.rpartition(".")[2]
    for pattern, makers in _RULES:
        if pattern.fullmatch(p.torch_type) and leaf in makers:
            return makers[leaf](p)
    return _recurrent(p, leaf)


def numbers(values: Any) -> str:
    """`3`, `2 × 1`, `same`."""
    return " × ".join(str(v) for v in cast("Sequence[Any]", values)) if isinstance(values, list) else str(values)


def convolution(settings: Mapping[str, Any], shape: Sequence[int], transposed: bool) -> Rule:
    """A weight of a convolution.

    Args:
        settings: stride, padding, dilation, groups, as far as known.
        shape: of the weight.
    """
    groups = int(settings.get("groups") or 1)
    inputs, outputs = (shape[0], shape[1] * groups) if transposed else (shape[1] * groups, shape[0])
    layout = "[in_channels, out_channels / groups, *kernel]" if transposed else _CONV_LAYOUT
    return Rule(
        "weight",
        layout,
        (_geometry(settings, transposed), *_grouping(groups, inputs, outputs)),
        _transforms(settings, shape, transposed),
    )


_CONV_LAYOUT = "[out_channels, in_channels / groups, *kernel], cross-correlation (not flipped)"


def _geometry(settings: Mapping[str, Any], transposed: bool) -> str:
    told = [f"{key} {numbers(settings[key])}" for key in ("stride", "padding", "dilation") if key in settings]
    mode = settings.get("padding_mode", "zeros")
    told += [f"padding_mode {mode}"] if mode != "zeros" else []
    told += (
        [f"output_padding {numbers(settings['output_padding'])}"] if transposed and "output_padding" in settings else []
    )
    return ", ".join([*told, f"groups {settings.get('groups') or 1}"])


def _grouping(groups: int, inputs: int, outputs: int) -> tuple[str, ...]:
    if groups == 1:
        return ()
    divisible = f"in_channels {inputs} and out_channels {outputs} are divisible by groups {groups}"
    each, reach = outputs // groups, inputs // groups
    first = "o" if each == 1 else f"⌊o / {each}⌋"
    if reach == 1:
        return (f"{divisible}: depthwise, output channel o reads input channel {first} alone",)
    return (f"{divisible}: output channel o reads {reach} input channels, from {first} · {reach} on",)


def _transforms(settings: Mapping[str, Any], shape: Sequence[int], transposed: bool) -> str:
    if transposed:
        return "a re-tiled or flipped copy"
    ones = all(numbers(settings.get(k, [1])).replace(" × ", "").strip("1") == "" for k in ("stride", "dilation"))
    wide = any(k > 1 for k in shape[2:])
    fast = ", or its Winograd or Fourier transform where the tolerance holds" if wide and ones else ""
    return f"a re-tiled copy (channels last, implicit GEMM){fast}"


def _conv(p: TracedParameter) -> Rule:
    return convolution(p.settings, p.shape, bool(p.settings.get("transposed")))


def _bias(what: str) -> Maker:
    return lambda p: Rule(
        "bias", f"[{what}], added to each", (), "a sum with other constants that are added right after it"
    )


def _linear(p: TracedParameter) -> Rule:
    return Rule("weight", "[out_features, in_features], row-major: y = x · weightᵀ + bias", (), RELAID)


def _bilinear(p: TracedParameter) -> Rule:
    layout = "[out_features, in1_features, in2_features]: y[o] = Σ x1[i] · weight[o, i, j] · x2[j] + bias[o]"
    return Rule("weight", layout, (), RELAID)


def _affine(place: str, shape: str) -> Maker:
    does = "scales the normalised value" if place == "weight" else "added after scaling"

    def rule(p: TracedParameter) -> Rule:
        return Rule(f"affine {place}", f"[{shape}], {does}", _norm_numbers(p), "", OWN_STATISTICS)

    return rule


def _norm_numbers(p: TracedParameter) -> tuple[str, ...]:
    groups, channels = p.settings.get("num_groups"), p.settings.get("num_channels")
    told = [f"eps {p.settings['eps']}, added to the variance"] if "eps" in p.settings else []
    if isinstance(groups, int) and isinstance(channels, int):
        told.append(
            f"num_channels {channels} is divisible by num_groups {groups}: {channels // groups} channels a group"
        )
    return tuple(told)


def _rms(p: TracedParameter) -> Rule:
    eps = (
        f"eps {p.settings['eps']}, added to the mean square" if "eps" in p.settings else "eps: that of the element type"
    )
    return Rule("affine weight", "[*normalized_shape], scales x / rms(x)", (eps,), "", OWN_STATISTICS)


def _running(leaf: str) -> Maker:
    limit = ("values are variances, not negative",) if leaf == "running_var" else ()
    return lambda p: Rule(leaf, "[channels]", (*limit, *_norm_numbers(p)))


def _counter(p: TracedParameter) -> Rule:
    return Rule("counter", "scalar", ("counts training batches",))


def _embedding(p: TracedParameter) -> Rule:
    told = [f"indices are from 0 to num_embeddings - 1 = {p.shape[0] - 1}"]
    if "padding_idx" in p.settings:
        told.append(f"row padding_idx = {p.settings['padding_idx']} is read like any other")
    return Rule("weight", "[num_embeddings, embedding_dim], one row per index", tuple(told), "a padded copy")


def _prelu(p: TracedParameter) -> Rule:
    one = p.shape == (1,)
    return Rule(
        "slope", "[1], for all channels" if one else "[channels], along dimension 1", ("applies to negative values",)
    )


def _attention(role: str, layout: str, may: str = "") -> Maker:
    def rule(p: TracedParameter) -> Rule | None:
        heads, width = p.settings.get("num_heads"), p.settings.get("embed_dim")
        if not isinstance(heads, int) or not isinstance(width, int):
            return None
        divisible = (
            f"embed_dim {width} is divisible by num_heads {heads}: head_dim {width // heads}, heads one after another"
        )
        return Rule(role, layout, (divisible,), may)

    return rule


GATES = {
    "LSTM": (4, "input, forget, cell, output"),
    "GRU": (3, "reset, update, new"),
    "RNN": (1, "a single gate"),
}
_RECURRENT = re.compile(r"(weight|bias)_(ih|hh|hr)(_l(\d+))?(_reverse)?")
_SOURCES = {"ih": "the layer's input", "hh": "the previous hidden state", "hr": "the new hidden state"}


def _recurrent(p: TracedParameter, leaf: str) -> Rule | None:
    match = _RECURRENT.fullmatch(leaf)
    kind = next((k for k in GATES if re.fullmatch(rf"{k}(Cell)?", p.torch_type)), None)
    if not match or kind is None:
        return None
    where = f"layer {match[4] or 0}" + (", backward direction" if match[5] else "")
    sizes = (f"input_size {p.settings.get('input_size')}, hidden_size {p.settings['hidden_size']}",)
    if match[1] == "bias":
        return _gate_bias(kind, match[2], where, sizes)
    return Rule("weight", _gate_layout(p, kind, match[2], int(match[4] or 0)) + f", {where}", sizes, RELAID)


def _gate_layout(p: TracedParameter, kind: str, which: str, layer: int) -> str:
    state = "proj_size" if p.settings.get("proj_size") else "hidden_size"
    if which == "hr":
        return "[proj_size, hidden_size]: projects the hidden state, h = weight_hr · (output · tanh(cell))"
    gates, names = GATES[kind]
    below = f"{2 if p.settings.get('bidirectional') else 1} · {state}" if layer else "input_size"
    columns = state if which == "hh" else below
    return f"[{gates} · hidden_size, {columns}]: {names}; multiplies {_SOURCES[which]}"


def _gate_bias(kind: str, which: str, where: str, sizes: tuple[str, ...]) -> Rule:
    gates, names = GATES[kind]
    layout = f"[{gates} · hidden_size]: {names}; added to the product with {_SOURCES[which]}, {where}"
    if kind != "GRU":
        return Rule("bias", layout, sizes, "the sum of bias_ih and bias_hh")
    return Rule(
        "bias",
        layout,
        sizes,
        "the sum of bias_ih and bias_hh for the reset and update gates (the first 2 · hidden_size) only",
        "the sum for the new gate: n = tanh(W_in x + b_in + r · (W_hn h + b_hn)), where the reset gate multiplies b_hn alone",
    )


_NORM = {"weight": _affine("weight", "channels"), "bias": _affine("bias", "channels")}
_RUNNING = {
    "running_mean": _running("running_mean"),
    "running_var": _running("running_var"),
    "num_batches_tracked": _counter,
}
_ATTENTION = {
    "in_proj_weight": _attention("weight", "[3 · embed_dim, embed_dim]: rows of query, key, value in turn", RELAID),
    "in_proj_bias": _attention("bias", "[3 · embed_dim]: query, key, value in turn"),
    "q_proj_weight": _attention("weight", "[embed_dim, embed_dim], query projection", RELAID),
    "k_proj_weight": _attention("weight", "[embed_dim, kdim], key projection", RELAID),
    "v_proj_weight": _attention("weight", "[embed_dim, vdim], value projection", RELAID),
    "bias_k": _attention("bias", "[1, 1, embed_dim], appended to the keys"),
    "bias_v": _attention("bias", "[1, 1, embed_dim], appended to the values"),
}
_RULES: tuple[tuple[re.Pattern[str], Mapping[str, Maker]], ...] = (
    (re.compile(r"(Lazy)?Conv(Transpose)?\dd"), {"weight": _conv, "bias": _bias("out_channels")}),
    (re.compile(r"(Lazy|NonDynamicallyQuantizable)?Linear"), {"weight": _linear, "bias": _bias("out_features")}),
    (re.compile(r"Bilinear"), {"weight": _bilinear, "bias": _bias("out_features")}),
    (re.compile(r"(Sync|Lazy)?(Batch|Instance)Norm(\dd)?"), {**_NORM, **_RUNNING}),
    (re.compile(r"GroupNorm"), _NORM),
    (
        re.compile(r"LayerNorm"),
        {"weight": _affine("weight", "*normalized_shape"), "bias": _affine("bias", "*normalized_shape")},
    ),
    (re.compile(r"RMSNorm"), {"weight": _rms}),
    (re.compile(r"Embedding(Bag)?"), {"weight": _embedding}),
    (re.compile(r"MultiheadAttention"), _ATTENTION),
    (re.compile(r"PReLU"), {"weight": _prelu}),
)
