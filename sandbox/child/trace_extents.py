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


def extent(base: str, arguments: Arguments, results: Sequence[Any]) -> Extent:
    """The extent of one call.

    Args:
        base: the operator's name without namespace.
    """
    rule = _RULES.get(base.rstrip("_") if base not in _RULES else base)
    return rule(arguments, results) if rule and results else Extent()


def _product(name: str) -> Callable[[Arguments, Sequence[Any]], Extent]:
    """Matrix products: the length of the inner dimension."""
    return lambda a, _: Extent(int(a[name].shape[-1]))


def _convolution(a: Arguments, _: Sequence[Any]) -> Extent:
    weight = a["weight"].shape
    channels = weight[0] // int(a.get("groups") or 1) if a.get("transposed") else weight[1]
    return Extent(int(channels * math.prod(weight[2:])))


def _attention(a: Arguments, _: Sequence[Any]) -> Extent:
    return Extent(int(a["key"].shape[-2]))


def _along(name: str) -> Callable[[Arguments, Sequence[Any]], Extent]:
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


def _layer_norm(a: Arguments, _: Sequence[Any]) -> Extent:
    x, normalised = _first(a), a["normalized_shape"]
    return Extent(int(math.prod(normalised)), tuple(range(x.dim() - len(normalised), x.dim())))


def _group_norm(a: Arguments, _: Sequence[Any]) -> Extent:
    x = _first(a)
    return Extent(int(x.numel() // (int(a["N"]) * int(a["group"]))), tuple(range(1, x.dim())))


def _batch_norm(a: Arguments, _: Sequence[Any]) -> Extent:
    x = _first(a)
    if not a.get("training", a.get("momentum") is not None):
        return Extent()
    return Extent(int(x.numel() // x.shape[1]), tuple(d for d in range(x.dim()) if d != 1))


def _window(rank: int) -> Callable[[Arguments, Sequence[Any]], Extent]:
    def rule(a: Arguments, _: Sequence[Any]) -> Extent:
        sides = _listed(a["kernel_size"])
        sides = sides * rank if len(sides) == 1 else sides
        x = _first(a)
        return Extent(int(math.prod(sides)), tuple(range(x.dim() - rank, x.dim())))

    return rule


def _adaptive(rank: int) -> Callable[[Arguments, Sequence[Any]], Extent]:
    def rule(a: Arguments, results: Sequence[Any]) -> Extent:
        x = _first(a)
        return Extent(max(1, x.numel() // max(1, results[0].numel())), tuple(range(x.dim() - rank, x.dim())))

    return rule


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
_WHOLE = "nll_loss_forward nll_loss2d_forward mse_loss smooth_l1_loss huber_loss binary_cross_entropy"

_RULES: Mapping[str, Callable[[Arguments, Sequence[Any]], Extent]] = {
    **{name: _along("dim") for name in _ALONG_DIM.split()},
    **{name: _whole for name in _WHOLE.split()},
    **{name: _product("self") for name in ("mm", "bmm", "mv", "dot", "vdot", "_scaled_mm")},
    "addmm": _product("mat1"),
    "addmv": _product("mat"),
    "baddbmm": _product("batch1"),
    "addbmm": _product("batch1"),
    "linear": _product("input"),
    "convolution": _convolution,
    "_convolution": _convolution,
    **{
        f"_scaled_dot_product_{kind}": _attention
        for kind in ("flash_attention", "flash_attention_for_cpu", "efficient_attention", "cudnn_attention")
    },
    "scaled_dot_product_attention": _attention,
    "native_layer_norm": _layer_norm,
    "_fused_rms_norm": _layer_norm,
    "native_group_norm": _group_norm,
    **{name: _batch_norm for name in ("native_batch_norm", "_native_batch_norm_legit", "cudnn_batch_norm")},
    "_batch_norm_with_update": lambda a, r: _batch_norm({**a, "training": True}, r),
    **{f"max_pool{n}d_with_indices": _window(n) for n in (2, 3)},
    **{f"avg_pool{n}d": _window(n) for n in (1, 2, 3)},
    **{f"_adaptive_avg_pool{n}d": _adaptive(n) for n in (2, 3)},
    **{f"adaptive_max_pool{n}d": _adaptive(n) for n in (2, 3)},
}
