"""What a tensor of the task's own modules means, by the operators that read it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hiera_mcp.contracts.parameter_rules import OWN_STATISTICS, RELAID, Rule, convolution
from hiera_mcp.contracts.readings import Reading, arrangement, axes, once
from hiera_mcp.model.work import TracedArgument, TracedParameter

Maker = Callable[[TracedParameter, Reading], Rule]

CONSTANT = "any function of it: it is a constant of the model"


def operator_rule(p: TracedParameter, uses: Sequence[Reading]) -> Rule:
    """The meaning of a bare parameter or buffer: by the first operator that a rule knows, else by its name.

    Args:
        uses: as `State.uses` gives them; several are told apart in the layout.
    """
    made: dict[tuple[str, str], Rule] = {}
    for reading in once(uses):
        maker = _maker(reading)
        if maker:
            rule = maker(p, reading) if reading.direct else _derived(p, reading)
            made.setdefault((rule.role, rule.layout), rule)
    if not made:
        return _named(p, uses)
    first, *rest = made.values()
    others = "".join(f"; also {r.role} {r.layout}" for r in rest[:2])
    return replace(first, layout=first.layout + others, may=first.may or (CONSTANT if p.buffer else ""))


def _maker(reading: Reading) -> Maker | None:
    return _ROLES.get((reading.base, reading.argument.name)) or _ANY.get(reading.argument.name)


def _derived(p: TracedParameter, reading: Reading) -> Rule:
    """The operator reads something computed from it, whose dimensions may be others."""
    role = (
        "mask"
        if _is_mask(p, reading)
        else f"source of {_ROLE_OF.get(f'{reading.base}.{reading.argument.name}', 'an operand')}"
    )
    layout = f"{_plain_layout(p)}; {reading.operator.name} reads what is computed from it as {reading.argument.name}"
    return Rule(role, f"{layout} {list(reading.argument.shape)}", (), CONSTANT)


def _named(p: TracedParameter, uses: Sequence[Reading]) -> Rule:
    leaf = p.path.rpartition(".")[2].lower()
    word = next((w for w in ("bias", "weight", "mask") if w in leaf), "parameter")
    readers = f"; {uses[0].operator.name} reads it as {uses[0].argument.name}" if uses else ""
    return Rule("buffer" if p.buffer and word != "mask" else word, _plain_layout(p) + readers, (), CONSTANT)


def _plain_layout(p: TracedParameter) -> str:
    return f"[{', '.join(str(d) for d in p.shape)}], row-major"


def _product(right: bool) -> Maker:
    """An operand of a matrix product, whose dimensions get the names of what they do."""

    def rule(p: TracedParameter, r: Reading) -> Rule:
        order = axes(p, r.argument)
        names = _product_names(len(r.argument.shape), right)
        if order is None or set(order) - {None} != set(range(len(p.shape))):
            part = f"{_plain_layout(p)}; {r.operator.name} reads it as {r.argument.name} {arrangement(p, r.argument)}"
            return Rule("weight", part, (), RELAID)
        name_of = {d: names[n] for n, d in enumerate(order) if d is not None}
        layout = ", ".join(name_of[d] for d in range(len(p.shape)))
        flipped = list(name_of) != sorted(name_of)
        w = "wᵀ" if flipped else "w"
        return Rule("weight", f"[{layout}], row-major: y = {f'x @ {w}' if right else f'{w} @ x'}", (), RELAID)

    return rule


def _product_names(rank: int, right: bool) -> tuple[str, ...]:
    if rank == 1:
        return ("in",)
    batch = ("batch",) * (rank - 2)
    return (*batch, "in", "out") if right else (*batch, "out", "in")


def _linear(p: TracedParameter, r: Reading) -> Rule:
    return Rule("weight", "[out, in], row-major: y = x @ wᵀ", (), RELAID)


def _conv(p: TracedParameter, r: Reading) -> Rule:
    known = axes(p, r.argument) == tuple(range(len(p.shape)))
    transposed = bool(r.operator.settings.get("transposed"))
    rule = convolution(r.operator.settings, r.argument.shape, transposed)
    return (
        rule
        if known
        else replace(rule, layout=f"{_plain_layout(p)}; read {arrangement(p, r.argument)} as {rule.layout}")
    )


def _pointwise(role: str, does: str) -> Maker:
    """An operand that is broadcast against the result."""

    def rule(p: TracedParameter, r: Reading) -> Rule:
        if _is_mask(p, r):
            return Rule("mask", f"{_plain_layout(p)}: {does} {_along(p, r.argument, r.operator.result)}", (), CONSTANT)
        return Rule(role, f"{_plain_layout(p)}: {does} {_along(p, r.argument, r.operator.result)}", (), CONSTANT)

    return rule


def _along(p: TracedParameter, argument: TracedArgument, result: Sequence[int]) -> str:
    """`each element of [4, 8]`; `along dimension 1 of [4, 8]`."""
    if all(size == 1 for size in p.shape):
        return f"every element of {list(result)}"
    order = axes(p, argument)
    if order is None:
        return f"with {list(result)}, read {arrangement(p, argument)}"
    shift = len(result) - len(order)
    pairs = [(d, n + shift) for n, d in enumerate(order) if d is not None and p.shape[d] > 1]
    if len(pairs) == 1:
        return f"along dimension {pairs[0][1]} of {list(result)}"
    if [d for d, _ in pairs] == list(range(len(result))) and tuple(p.shape) == tuple(result):
        return f"element by element, {list(result)}"
    text = ", ".join(f"{d} → {n}" for d, n in pairs)
    return f"along the dimensions {text} of {list(result)}, broadcast over the rest"


def _is_mask(p: TracedParameter, r: Reading) -> bool:
    named = "mask" in p.path.rpartition(".")[2].lower()
    return named or p.dtype == "bool" or r.argument.name in ("mask", "condition", "attn_mask")


def _fixed(role: str, layout: str, may: str = CONSTANT, eps: bool = False) -> Maker:
    def rule(p: TracedParameter, r: Reading) -> Rule:
        told = (
            (f"eps {r.operator.settings['eps']}, added to the variance",)
            if eps and "eps" in r.operator.settings
            else ()
        )
        return Rule(role, layout, told, "" if eps else may, OWN_STATISTICS if eps else "")

    return rule


def _table(p: TracedParameter, r: Reading) -> Rule:
    rows = p.shape[0] if p.shape else 1
    return Rule("table", "[rows, …], one row per index", (f"indices are from 0 to {rows - 1}",), "a padded copy")


def _piece(p: TracedParameter, r: Reading) -> Rule:
    where = f"along dimension {r.operator.settings['dim']} " if "dim" in r.operator.settings else ""
    does = f"{r.operator.name} puts it {where}beside other tensors, into {list(r.operator.result)}"
    return Rule("piece", f"{_plain_layout(p)}: {does}", (), "")


_BIAS = _fixed("bias", "[out_channels], added to each")
_ROLE_OF: Mapping[str, str] = {
    **dict.fromkeys(("addmm.self", "addmv.self", "baddbmm.self", "convolution.bias"), "a bias"),
    **dict.fromkeys(("mm.mat2", "addmm.mat2", "bmm.mat2", "convolution.weight"), "a weight"),
    **dict.fromkeys(("add.self", "add.other"), "an addend"),
    **dict.fromkeys(("mul.self", "mul.other"), "a scale"),
    "embedding.indices": "indices",
}
"""Operator and argument → what a tensor is the source of."""
_ROLES: Mapping[tuple[str, str], Maker] = {
    **{(op, name): _product(True) for op, name in (("mm", "mat2"), ("addmm", "mat2"), ("bmm", "mat2"), ("mv", "vec"))},
    **{(op, name): _product(True) for op, name in (("addmv", "vec"), ("baddbmm", "batch2"), ("addbmm", "batch2"))},
    **{
        (op, name): _product(False) for op, name in (("mm", "self"), ("addmm", "mat1"), ("bmm", "self"), ("mv", "self"))
    },
    **{(op, name): _product(False) for op, name in (("addmv", "mat"), ("baddbmm", "batch1"), ("addbmm", "batch1"))},
    **{(op, name): _product(True) for op in ("dot", "vdot") for name in ("self", "tensor", "other")},
    ("linear", "weight"): _linear,
    **{(op, "self"): _pointwise("bias", "added to the product") for op in ("addmm", "addmv", "baddbmm", "addbmm")},
    **{(op, name): _pointwise("addend", "added") for op in ("add", "rsub") for name in ("self", "other")},
    ("sub", "other"): _pointwise("subtrahend", "subtracted"),
    ("sub", "self"): _pointwise("minuend", "the other operand is subtracted from it"),
    **{("mul", name): _pointwise("scale", "multiplied") for name in ("self", "other")},
    ("div", "other"): _pointwise("divisor", "divides"),
    ("div", "self"): _pointwise("dividend", "is divided"),
    ("pow", "exponent"): _pointwise("exponent", "is the power"),
    **{
        (op, name): _pointwise("limit", "limits")
        for op in ("clamp", "clamp_min", "clamp_max", "maximum", "minimum")
        for name in ("min", "max", "self", "other")
    },
    **{("where", name): _pointwise("values", "chosen by the condition,") for name in ("self", "other")},
    ("where", "condition"): _pointwise("mask", "chooses"),
    ("masked_fill", "mask"): _pointwise("mask", "says what is filled,"),
    **{(op, name): _conv for op in ("convolution", "_convolution") for name in ("weight",)},
    **{(op, "bias"): _BIAS for op in ("convolution", "_convolution")},
    ("embedding", "weight"): _table,
    **{(op, "self"): _table for op in ("index", "index_select")},
    **{(op, "tensors"): _piece for op in ("cat", "stack")},
    **{
        (op, name): _fixed(f"affine {name}", layout, eps=True)
        for op, shape in (
            ("native_layer_norm", "*normalized_shape"),
            ("native_group_norm", "channels"),
            ("native_batch_norm", "channels"),
            ("_fused_rms_norm", "*normalized_shape"),
        )
        for name, layout in (
            ("weight", f"[{shape}], scales the normalised value"),
            ("bias", f"[{shape}], added after scaling"),
        )
    },
    **{("native_batch_norm", name): _fixed(name, "[channels]", eps=True) for name in ("running_mean", "running_var")},
    ("_prelu_kernel", "weight"): _pointwise("slope", "multiplies negative values"),
    ("prelu", "weight"): _pointwise("slope", "multiplies negative values"),
}
_ANY: Mapping[str, Maker] = {name: _pointwise("mask", "masks") for name in ("attn_mask", "attn_bias")}
