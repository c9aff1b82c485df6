"""How many elements go into one element of a result, and along which dimensions of the first argument they lie."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast


@dataclass(frozen=True)
class Extent:
    """1 and no dimension: element by element."""

    size: int = 1
    dims: tuple[int, ...] = ()


Arguments = Mapping[str, Any]
"""All arguments of a call by the names of its schema."""
Rule = Callable[[Arguments, Sequence[Any]], Extent]


def extent(base: str, arguments: Arguments, results: Sequence[Any]) -> Extent:
    """The extent of one call.

    Args:
        base: the operator's name without namespace.
    """
    rule = RULES.get(base, RULES.get(base.removesuffix("_")))
    return rule(arguments, results) if rule and results else Extent()


def _product(name: str) -> Rule:
    """Matrix products: the length of the inner dimension."""
    return lambda a, _: Extent(int(a[name].shape[-1]))


def _convolution(a: Arguments, _: Sequence[Any]) -> Extent:
    """Channels × taps. A transposed convolution reaches at most every stride-th tap."""
    weight = a["weight"].shape
    if not a.get("transposed"):
        return Extent(int(math.prod(weight[1:])))
    steps = _listed(a["stride"])
    steps = steps * (len(weight) - 2) if len(steps) == 1 else steps
    taps = (math.ceil(side / step) for side, step in zip(weight[2:], steps, strict=True))
    return Extent(int(weight[0] // int(a["groups"]) * math.prod(taps)))


def _conv_tbc(a: Arguments, _: Sequence[Any]) -> Extent:
    taps, channels, _out = a["weight"].shape
    return Extent(int(taps * channels))


def _batched_sum(a: Arguments, _: Sequence[Any]) -> Extent:
    """addbmm sums over the batch, too."""
    return Extent(int(a["batch1"].shape[0] * a["batch1"].shape[-1]))


def _trilinear(a: Arguments, _: Sequence[Any]) -> Extent:
    """Three operands, unsqueezed at `expandN`, are multiplied and summed over `sumdim` (nn.Bilinear)."""
    import torch

    shapes: list[tuple[int, ...]] = []
    for n in (1, 2, 3):
        shape = list(a[f"i{n}"].shape)
        for d in sorted(a[f"expand{n}"]):
            shape.insert(d, 1)
        shapes.append(tuple(shape))
    joint = tuple(cast(Any, torch).broadcast_shapes(*shapes))
    return Extent(math.prod(int(joint[d]) for d in a["sumdim"]))


def _attention(a: Arguments, _: Sequence[Any]) -> Extent:
    return Extent(int(a["key"].shape[-2]))


def _along(name: str) -> Rule:
    """Reductions and scans over the dimensions that an argument names; over all where it names none."""

    def rule(a: Arguments, _: Sequence[Any]) -> Extent:
        given: Any = a.get(name)
        x = _first(a)
        listed = [] if given is None else _listed(given)
        rank = max(1, x.dim())
        dims = tuple(sorted(int(d) % rank for d in listed)) or tuple(range(x.dim()))
        return Extent(math.prod(int(x.shape[d]) for d in dims if d < x.dim()), dims)

    return rule


def _whole(a: Arguments, _: Sequence[Any]) -> Extent:
    x = _first(a)
    return Extent(int(x.numel()), tuple(range(x.dim())))


def _loss(a: Arguments, results: Sequence[Any]) -> Extent:
    """All elements, unless the loss is asked for element by element (`reduction` 0)."""
    return _whole(a, results) if a.get("reduction", 1) else Extent()


def _picked_loss(a: Arguments, _: Sequence[Any]) -> Extent:
    """Of the scores only one per target is summed."""
    return Extent(int(a["target"].numel())) if a["reduction"] else Extent()


def _diagonal(a: Arguments, _: Sequence[Any]) -> Extent:
    return Extent(int(min(_first(a).shape)))


def _distance(name: str) -> Rule:
    """Distances between rows."""
    return lambda a, _: Extent(int(a[name].shape[-1]))


def _bags(a: Arguments, results: Sequence[Any]) -> Extent:
    """The mean number of rows that are summed."""
    return Extent(max(1, int(a["indices"].numel()) // max(1, int(results[0].shape[0]))))


def _layer_norm(a: Arguments, _: Sequence[Any]) -> Extent:
    x, normalised = _first(a), a["normalized_shape"]
    return Extent(int(math.prod(normalised)), tuple(range(x.dim() - len(normalised), x.dim())))


def _group_norm(a: Arguments, _: Sequence[Any]) -> Extent:
    """Of dimension 1, a group is a part only."""
    x = _first(a)
    return Extent(int(x.numel() // (int(a["N"]) * int(a["group"]))), tuple(range(1, x.dim())))


def _weight_norm(a: Arguments, _: Sequence[Any]) -> Extent:
    """Over all dimensions but one."""
    x, kept = _first(a), int(a["dim"]) % _first(a).dim()
    return Extent(int(x.numel() // x.shape[kept]), tuple(d for d in range(x.dim()) if d != kept))


def _batch_statistics(a: Arguments, _: Sequence[Any]) -> Extent:
    x = _first(a)
    return Extent(int(x.numel() // x.shape[1]), tuple(d for d in range(x.dim()) if d != 1))


def _batch_norm(a: Arguments, results: Sequence[Any]) -> Extent:
    """With the running statistics it is element by element."""
    return _batch_statistics(a, results) if a["training"] else Extent()


def _window(rank: int) -> Rule:
    """The elements of a window; it runs over no dimension as a whole."""

    def rule(a: Arguments, _: Sequence[Any]) -> Extent:
        sides = _listed(a["kernel_size"])
        return Extent(int(math.prod(sides * rank if len(sides) == 1 else sides)))

    return rule


def _adaptive(rank: int) -> Rule:
    """Windows as long as is needed; the whole plane where one element is left of it."""

    def rule(a: Arguments, results: Sequence[Any]) -> Extent:
        sides = [math.ceil(n / made) for n, made in _sides(_first(a), results[0], rank)]
        alone = all(made == 1 for _, made in _sides(_first(a), results[0], rank))
        x = _first(a)
        return Extent(math.prod(sides), tuple(range(x.dim() - rank, x.dim())) if alone else ())

    return rule


def _sides(x: Any, result: Any, rank: int) -> list[tuple[int, int]]:
    return [(int(n), max(1, int(made))) for n, made in zip(x.shape[-rank:], result.shape[-rank:], strict=True)]


def _listed(value: Any) -> list[int]:
    return list(cast("Sequence[int]", value)) if isinstance(value, list | tuple) else [value]


def _first(a: Arguments) -> Any:
    import torch

    return next(v for v in a.values() if isinstance(v, torch.Tensor))


_ALONG_DIM = """
    sum mean prod amax amin max min argmax argmin any all var std var_mean std_mean norm linalg_vector_norm
    logsumexp aminmax median nanmedian mode nansum count_nonzero topk kthvalue sort _softmax _log_softmax _safe_softmax
    cumsum cumprod cummax cummin logcumsumexp _fft_r2c _fft_c2c _fft_c2r
    """
_LOSSES = """
    mse_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits soft_margin_loss
    multi_margin_loss multilabel_margin_loss_forward
    """
_PRODUCTS = {
    "self": "mm bmm mv dot vdot _scaled_mm _int_mm _grouped_mm _scaled_grouped_mm mkldnn_linear",
    "mat1": "addmm _addmm_activation",
    "mat": "addmv",
    "batch1": "baddbmm",
    "input": "linear",
    "x1": "_euclidean_dist",
}

RULES: Mapping[str, Rule] = {
    **{name: _along("dim") for name in _ALONG_DIM.split()},
    **{name: _loss for name in _LOSSES.split()},
    **{name: _product(factor) for factor, names in _PRODUCTS.items() for name in names.split()},
    **{name: _picked_loss for name in ("nll_loss_forward", "nll_loss2d_forward")},
    "dist": _whole,
    "trace": _diagonal,
    "addbmm": _batched_sum,
    "_trilinear": _trilinear,
    **{name: _convolution for name in ("convolution", "_convolution", "conv2d", "mkldnn_convolution")},
    "cudnn_convolution": _convolution,
    "conv_tbc": _conv_tbc,
    **{
        f"_scaled_dot_product_{kind}": _attention
        for kind in ("flash_attention", "flash_attention_for_cpu", "efficient_attention", "cudnn_attention")
    },
    "scaled_dot_product_attention": _attention,
    "_cdist_forward": _distance("x1"),
    "_pdist_forward": _distance("self"),
    **{name: _bags for name in ("_embedding_bag", "_embedding_bag_forward_only")},
    **{name: _layer_norm for name in ("native_layer_norm", "_fused_rms_norm", "rms_norm")},
    "native_group_norm": _group_norm,
    "_masked_softmax": _along("dim"),
    "_weight_norm_interface": _weight_norm,
    "renorm": _weight_norm,
    **{name: _batch_norm for name in ("native_batch_norm", "_native_batch_norm_legit", "cudnn_batch_norm")},
    **{name: _batch_statistics for name in ("_batch_norm_with_update", "_native_batch_norm_legit_functional")},
    **{
        f"{kind}max_pool{n}d{end}": _window(n)
        for kind, end in (("", "_with_indices"), ("fractional_", ""))
        for n in (2, 3)
    },
    **{f"avg_pool{n}d": _window(n) for n in (1, 2, 3)},
    **{f"_adaptive_avg_pool{n}d": _adaptive(n) for n in (2, 3)},
    **{f"adaptive_max_pool{n}d": _adaptive(n) for n in (2, 3)},
}
"""Operators that are not here take one element of each argument."""
