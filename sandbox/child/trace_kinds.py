"""What an ATen operator is, and what it costs where torch.utils.flop_counter does not count it.

Costs are arithmetic operations per point, counting exp, erf, tanh, rsqrt, a comparison and a division as one each. A point
is an element of the largest tensor that the operator reads or writes.
"""

import math
from functools import cache
from typing import Any, cast

_NAMES = {
    "gemm": """
        mm addmm bmm baddbmm addbmm mv addmv dot vdot addr linear mkldnn_linear _addmm_activation _scaled_mm _int_mm
        _grouped_mm _scaled_grouped_mm _trilinear _euclidean_dist
        """,
    "conv": "convolution _convolution conv2d conv_tbc cudnn_convolution mkldnn_convolution",
    "normalisation": """
        native_layer_norm native_group_norm native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_functional
        _native_batch_norm_legit_no_training _batch_norm_with_update _batch_norm_no_update _fused_rms_norm rms_norm
        cudnn_batch_norm _softmax _log_softmax _safe_softmax _masked_softmax _weight_norm_interface renorm
        """,
    "scan": "cumsum cumprod cummax cummin logcumsumexp",
    "reduction": """
        sum mean prod amax amin max min argmax argmin any all var std var_mean std_mean norm linalg_vector_norm
        logsumexp aminmax median nanmedian mode nansum count_nonzero topk kthvalue trace max_pool2d_with_indices
        max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d
        adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d nll_loss_forward
        nll_loss2d_forward mse_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits
        soft_margin_loss multi_margin_loss multilabel_margin_loss_forward dist _embedding_bag
        _embedding_bag_forward_only _cdist_forward _pdist_forward
        """,
    "elementwise": """
        hardswish glu log_sigmoid_forward rrelu_with_noise native_dropout _prelu_kernel _add_relu complex polar
        linalg_cross upsample_linear1d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d _upsample_bilinear2d_aa
        _upsample_bicubic2d_aa grid_sampler_2d grid_sampler_3d affine_grid_generator __ilshift__ __irshift__
        """,
    "movement": """
        copy clone cat _stack stack index index_select gather _unsafe_index index_fill embedding t transpose constant_pad_nd reflection_pad1d reflection_pad2d
        reflection_pad3d replication_pad1d replication_pad2d replication_pad3d roll rot90 flip repeat fill zero zeros ones
        full zeros_like ones_like full_like arange range linspace logspace eye scalar_tensor _to_copy tril triu im2col
        col2im pixel_shuffle pixel_unshuffle upsample_nearest1d upsample_nearest2d upsample_nearest3d
        _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d lift_fresh lift_fresh_copy take
        slice_scatter select_scatter diagonal_scatter as_strided_scatter new_zeros new_ones new_full
        diag_embed block_diag channel_shuffle native_channel_shuffle repeat_interleave unfold_copy view_copy
        _reshape_copy max_unpool2d max_unpool3d tril_indices triu_indices one_hot
        """,
}

KINDS: dict[str, frozenset[str]] = {kind: frozenset(names.split()) for kind, names in _NAMES.items()}
"""Kind → operator names without the `aten.` and the `_` of the in-place form. Of all others, those that torch tags as
pointwise are elementwise, and the rest (sorting, FFT, scatters, …) is other: no fused kernel takes it along."""

COSTS: dict[str, float] = {
    "native_layer_norm": 8,  # mean 1, variance 3, normalise 2, affine 2
    "native_group_norm": 8,
    "native_batch_norm": 8,
    "_native_batch_norm_legit": 8,
    "_native_batch_norm_legit_functional": 8,
    "_batch_norm_with_update": 8,
    "_native_batch_norm_legit_no_training": 4,  # normalise 2, affine 2
    "_batch_norm_no_update": 4,
    "_fused_rms_norm": 4,  # square, sum, scale, weight
    "_weight_norm_interface": 3,  # square, sum, scale
    "_softmax": 5,  # max, subtract, exp, sum, divide
    "_log_softmax": 5,
    "_safe_softmax": 5,
    "_masked_softmax": 5,
    "var": 3,
    "std": 3,
    "var_mean": 4,
    "std_mean": 4,
    "logsumexp": 4,
    "linalg_vector_norm": 2,
    "norm": 2,
    "mse_loss": 3,
    "smooth_l1_loss": 4,
    "huber_loss": 4,
    "binary_cross_entropy": 6,  # two logarithms, two products, their sum, sum
    "binary_cross_entropy_with_logits": 7,
    "_cdist_forward": 3,  # subtract, power, add
    "_pdist_forward": 3,
    "gelu": 5,  # scale, erf, add, multiply, multiply
    "silu": 4,
    "sigmoid": 3,
    "softplus": 3,
    "log_sigmoid_forward": 3,
    "mish": 5,
    "hardswish": 5,
    "hardsigmoid": 4,
    "glu": 2,  # of its two halves: sigmoid, multiply
    "elu": 3,
    "selu": 4,
    "celu": 4,
    "leaky_relu": 2,
    "_prelu_kernel": 2,
    "scatter": 0,
    "index_put": 0,
    "_index_put_impl": 0,
    "_unsafe_index_put": 0,
    "masked_select": 0,
    "nonzero": 0,
    "clamp": 2,
    "hardtanh": 2,
    "addcmul": 3,
    "addcdiv": 3,
    "lerp": 3,
    "upsample_linear1d": 3,
    "upsample_bilinear2d": 8,
    "upsample_trilinear3d": 16,
    "upsample_bicubic2d": 40,
    "grid_sampler_2d": 8,
    "grid_sampler_3d": 16,
}
"""Operations per point of composite operators; 1 for all others, 0 for movement."""

LOGARITHMIC = {"_fft_c2c": 5.0, "_fft_r2c": 2.5, "_fft_c2r": 2.5, "sort": 1.0, "topk": 1.0}
"""Operations per point and per doubling of the length of a transform or of a sort."""

CUBIC = {
    "linalg_cholesky_ex": 1 / 3,
    "cholesky": 1 / 3,
    "linalg_lu_factor_ex": 2 / 3,
    "_linalg_solve_ex": 2 / 3,
    "_linalg_det": 2 / 3,
    "_linalg_slogdet": 2 / 3,
    "linalg_inv_ex": 2.0,
    "linalg_qr": 8 / 3,
    "_linalg_eigh": 9.0,
    "_linalg_svd": 22.0,
    "linalg_matrix_exp": 30.0,
}
"""Operations per point and per row of a factorised matrix (Golub and Van Loan, Matrix Computations, 4th ed.)."""

_PER_RESULT = """
    max_pool2d_with_indices max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d fractional_max_pool2d
    fractional_max_pool3d nll_loss_forward nll_loss2d_forward _cdist_forward _pdist_forward _embedding_bag
    _embedding_bag_forward_only
    """
PER_RESULT = frozenset(_PER_RESULT.split())
"""Operators whose points are not the elements of a tensor, but those that go into each result."""


@cache
def kind(name: str) -> str:
    """`gemm`, `conv`, `attention`, … of an operator named like `aten.addmm` or `addmm`. An in-place one is of the same kind."""
    base = name.rpartition(".")[2]
    if "attention" in base:
        return "attention"
    plain = _plain(base)
    listed = next((k for k, names in KINDS.items() if base in names or plain in names), None)
    if listed:
        return listed
    return "elementwise" if _pointwise(base) or _pointwise(plain) else "other"


def _plain(base: str) -> str:
    """The name of the operator that is not in place."""
    return base.removesuffix("_") if not base.endswith("__") else base


def _pointwise(base: str) -> bool:
    """Whether torch tags an overload of it so."""
    import torch

    packet: Any = getattr(torch.ops.aten, base, None)
    overloads = cast("list[str]", packet.overloads()) if packet is not None else []
    return any(torch.Tag.pointwise in getattr(packet, o).tags for o in overloads)


def cost(name: str, reduced: int = 1, rows: int = 1) -> float:
    """Operations per point, 0 for operators that only move data. An in-place variant costs the same.

    Args:
        reduced: elements that go into one result, see `trace_extents`.
        rows: of the matrix that is factorised.
    """
    if kind(name) == "movement":
        return 0.0
    base = _plain(name.rpartition(".")[2])
    if base in LOGARITHMIC:
        return LOGARITHMIC[base] * max(1.0, math.log2(max(1, reduced)))
    return CUBIC[base] * rows if base in CUBIC else COSTS.get(base, 1.0)
