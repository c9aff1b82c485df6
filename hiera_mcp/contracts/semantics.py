"""What each parameter and buffer means: role, layout in words, who consumes it, what may be derived from it.

Rules are keyed by the owning module's type as PyTorch names it; layouts follow the PyTorch documentation of torch.nn.
"""

import re
from dataclasses import dataclass, replace

from hiera_mcp.contracts.names import Namer
from hiera_mcp.model.contract import Parameter
from hiera_mcp.model.work import Trace, TracedParameter


@dataclass(frozen=True)
class Rule:
    """What is known of one kind of tensor."""

    role: str
    layout: str
    constraints: tuple[str, ...] = ()
    may_precompute: str = ""


_RETILE = "a transposed, padded or re-tiled copy; a copy in another type only where the tolerance holds"
_CONV = Rule(
    "weight",
    "[out_channels, in_channels / groups, *kernel], cross-correlation (not flipped)",
    ("in_channels and out_channels are divisible by groups",),
    "a re-tiled copy (channels last, implicit GEMM), a Winograd or Fourier transform; a batch norm that follows may be "
    "folded in only when it runs in eval mode",
)
_CONV_T = Rule(
    "weight",
    "[in_channels, out_channels / groups, *kernel]",
    ("in_channels and out_channels are divisible by groups",),
    "a re-tiled or flipped copy",
)
_BIAS = Rule("bias", "[out_channels]", (), "a sum with other per-channel constants that are added right after it")
_AFFINE = {
    "weight": Rule("affine weight", "[channels], scales the normalised value"),
    "bias": Rule("affine bias", "[channels], added after scaling"),
}
_LINEAR = {
    "weight": Rule("weight", "[out_features, in_features], row-major: y = x · weightᵀ + bias", (), _RETILE),
    "bias": replace(_BIAS, layout="[out_features]"),
}
_BATCH_NORM = {
    **_AFFINE,
    "running_mean": Rule("running_mean", "[channels]"),
    "running_var": Rule("running_var", "[channels]", ("values are variances, not negative",)),
    "num_batches_tracked": Rule("counter", "scalar", ("counts training batches; has no effect on the output",)),
}
_LAYER_NORM = {
    "weight": Rule("affine weight", "[*normalized_shape], scales the normalised value"),
    "bias": Rule("affine bias", "[*normalized_shape], added after scaling"),
}
_EMBEDDING = {
    "weight": Rule(
        "weight",
        "[num_embeddings, embedding_dim], one row per index",
        ("indices in the inputs are below num_embeddings",),
        "a padded copy",
    )
}
_ATTENTION = {
    "in_proj_weight": Rule("weight", "[3 · embed_dim, embed_dim]: rows of query, key, value in turn", (), _RETILE),
    "in_proj_bias": Rule("bias", "[3 · embed_dim]: query, key, value in turn"),
    "q_proj_weight": Rule("weight", "[embed_dim, embed_dim], query projection", (), _RETILE),
    "k_proj_weight": Rule("weight", "[embed_dim, kdim], key projection", (), _RETILE),
    "v_proj_weight": Rule("weight", "[embed_dim, vdim], value projection", (), _RETILE),
    "bias_k": Rule("bias", "[1, 1, embed_dim], appended to the keys"),
    "bias_v": Rule("bias", "[1, 1, embed_dim], appended to the values"),
}
_GATES = {
    "LSTM": ("4", "input, forget, cell, output"),
    "GRU": ("3", "reset, update, new"),
    "RNN": ("1", "a single gate"),
}

_RULES: tuple[tuple[re.Pattern[str], dict[str, Rule]], ...] = tuple(
    (re.compile(pattern), rules)
    for pattern, rules in (
        (r"ConvTranspose\dd", {"weight": _CONV_T, "bias": _BIAS}),
        (r"Conv\dd", {"weight": _CONV, "bias": _BIAS}),
        (r"(NonDynamicallyQuantizable)?Linear", _LINEAR),
        (
            r"Bilinear",
            {
                "weight": Rule("weight", "[out_features, in1_features, in2_features]", (), _RETILE),
                "bias": _LINEAR["bias"],
            },
        ),
        (r"(Sync|Lazy)?BatchNorm(\dd)?", _BATCH_NORM),
        (r"InstanceNorm\dd", _BATCH_NORM),
        (r"GroupNorm", _AFFINE),
        (r"(Layer|RMS)Norm", _LAYER_NORM),
        (r"Embedding(Bag)?", _EMBEDDING),
        (r"MultiheadAttention", _ATTENTION),
        (r"PReLU", {"weight": Rule("slope", "[1] or [channels], slope for negative values")}),
    )
)

_RECURRENT = re.compile(r"^(weight|bias)_(ih|hh|hr)(_l(\d+))?(_reverse)?$")


def parameters_of(trace: Trace, namer: Namer) -> tuple[Parameter, ...]:
    """All parameters and buffers of a trace, with their meaning, under names unique in the interface."""
    train = "mode: train" in trace.notes
    return tuple(_parameter(p, namer, _unread(p, trace), train) for p in trace.parameters)


def _unread(parameter: TracedParameter, trace: Trace) -> bool:
    return trace.touched_bytes is not None and trace.touched_bytes.get(f"state.{parameter.path}") == 0


def _parameter(p: TracedParameter, namer: Namer, unread: bool, train: bool) -> Parameter:
    rule = rule_for(p, train)
    ignored = ("forward() does not read it",) if unread else ()
    return Parameter(
        name=namer.name(p.path.replace(".", "_"), "param"),
        shape=p.shape,
        dtype=p.dtype,
        path=p.path,
        role=rule.role,
        layout=rule.layout,
        consumed_by=_consumer(p),
        constraints=(*rule.constraints, *ignored),
        may_precompute="" if unread else rule.may_precompute,
    )


def rule_for(p: TracedParameter, train: bool) -> Rule:
    """The meaning of a parameter: by its module's type, else by what its name and shape say."""
    leaf = p.path.rpartition(".")[2]
    for pattern, rules in _RULES:
        if pattern.fullmatch(p.module_type) and leaf in rules:
            return _in_mode(rules[leaf], p, leaf, train)
    return _recurrent(p, leaf) or _bare(p, leaf)


def _in_mode(rule: Rule, p: TracedParameter, leaf: str, train: bool) -> Rule:
    """Batch statistics decide what may be folded: in train mode nothing, in eval mode everything."""
    if not re.fullmatch(r"(Sync|Lazy)?BatchNorm(\dd)?", p.module_type) or leaf == "num_batches_tracked":
        return rule
    if not train:
        folded = "scale = weight / sqrt(running_var + eps) and shift = bias - running_mean · scale; both may be folded "
        return replace(rule, may_precompute=folded + "into a linear operator next to it")
    if leaf.startswith("running"):
        unused = "train mode normalises by the batch's own statistics: this only keeps their running average"
        return replace(rule, constraints=(*rule.constraints, unused))
    return replace(
        rule, constraints=(*rule.constraints, "must not be folded: statistics come from the batch (train mode)")
    )


def _recurrent(p: TracedParameter, leaf: str) -> Rule | None:
    match = _RECURRENT.match(leaf)
    gates = next((v for k, v in _GATES.items() if p.module_type.startswith(k)), None)
    if not match or gates is None:
        return None
    source = {"ih": "the layer's input", "hh": "the previous hidden state", "hr": "the projection"}[match[2]]
    where = f"layer {match[4] or 0}" + (", backward direction" if match[5] else "")
    if match[1] == "bias":
        both = "" if p.module_type.startswith("GRU") else "the sum of bias_ih and bias_hh"
        return Rule("bias", f"[{gates[0]} · hidden_size]: {gates[1]}; added to {source}, {where}", (), both)
    layout = f"[{gates[0]} · hidden_size, columns]: {gates[1]}; multiplies {source}, {where}"
    return Rule("weight", layout, (), _RETILE)


def _bare(p: TracedParameter, leaf: str) -> Rule:
    """A tensor of a module of the task's own: named after itself."""
    role = "buffer" if p.buffer else ("bias" if "bias" in leaf else "weight" if "weight" in leaf else "parameter")
    layout = f"[{', '.join(str(d) for d in p.shape)}], row-major; the reference's source says what each dimension means"
    derived = "constants and re-laid copies" if p.buffer else "a re-laid copy, or constants that depend on it alone"
    return Rule(role, layout, (), derived)


def _consumer(p: TracedParameter) -> str:
    """`Linear fc(in_features=96, out_features=32, bias=True)`; the type and path of a module of the task's own."""
    if not p.module_path:
        return f"{p.module_type}.forward()"
    whole = p.module_repr.startswith(f"{p.module_type}(") and p.module_repr.endswith(")") and "): " not in p.module_repr
    settings = p.module_repr.removeprefix(p.module_type) if whole else ""
    return f"{p.module_type} {p.module_path}{settings}"
