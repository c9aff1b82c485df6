"""What an ATen operator is, and what it costs where torch.utils.flop_counter does not count it.

Costs are arithmetic operations per point, counting exp, erf, tanh, rsqrt and a division as one each. A point is an
element of the largest tensor that the operator reads or writes.
"""

_NAMES = {
    "gemm": "mm addmm bmm baddbmm mv addmv dot vdot addr addbmm linear _scaled_mm _grouped_mm",
    "conv": "convolution _convolution conv2d cudnn_convolution mkldnn_convolution",
    "normalisation": """
        native_layer_norm native_group_norm native_batch_norm _native_batch_norm_legit
        _native_batch_norm_legit_no_training _batch_norm_with_update _fused_rms_norm rms_norm cudnn_batch_norm
        _softmax _log_softmax _safe_softmax
        """,
    "scan": "cumsum cumprod cummax cummin logcumsumexp",
    "reduction": """
        sum mean prod amax amin max min argmax argmin any all var std var_mean std_mean norm linalg_vector_norm
        logsumexp aminmax median nanmedian mode nansum count_nonzero topk kthvalue trace max_pool2d_with_indices
        max_pool3d_with_indices avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d
        adaptive_max_pool3d nll_loss_forward nll_loss2d_forward mse_loss smooth_l1_loss huber_loss
        binary_cross_entropy
        """,
    "movement": """
        copy_ clone cat stack index index_select gather scatter scatter_ index_put index_put_ embedding
        constant_pad_nd reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d
        replication_pad3d roll flip repeat fill_ zero_ zeros ones full zeros_like ones_like full_like arange
        linspace eye scalar_tensor _to_copy masked_fill masked_fill_ where tril triu tril_ triu_ im2col col2im
        pixel_shuffle pixel_unshuffle upsample_nearest1d upsample_nearest2d upsample_nearest3d lift_fresh
        lift_fresh_copy take masked_select slice_scatter select_scatter new_zeros new_ones new_full diag_embed
        channel_shuffle nonzero repeat_interleave unfold_copy view_copy
        """,
    "other": "sort unique _unique2 _fft_r2c _fft_c2c _fft_c2r histc bincount searchsorted",
}

KINDS: dict[str, frozenset[str]] = {kind: frozenset(names.split()) for kind, names in _NAMES.items()}
"""Kind → operator names without the `aten.`; all others with tensors are elementwise."""

COSTS: dict[str, float] = {
    "native_layer_norm": 8,  # mean 1, variance 3, normalise 2, affine 2
    "native_group_norm": 8,
    "native_batch_norm": 8,
    "_native_batch_norm_legit": 8,
    "_batch_norm_with_update": 8,
    "_native_batch_norm_legit_no_training": 4,  # normalise 2, affine 2
    "_fused_rms_norm": 4,  # square, sum, scale, weight
    "_softmax": 5,  # max, subtract, exp, sum, divide
    "_log_softmax": 5,
    "_safe_softmax": 5,
    "var": 3,
    "std": 3,
    "var_mean": 4,
    "std_mean": 4,
    "logsumexp": 4,
    "linalg_vector_norm": 2,
    "mse_loss": 3,
    "smooth_l1_loss": 4,
    "huber_loss": 4,
    "gelu": 5,  # scale, erf, add, multiply, multiply
    "silu": 4,
    "sigmoid": 3,
    "softplus": 3,
    "mish": 5,
    "hardswish": 5,
    "hardsigmoid": 4,
    "elu": 3,
    "selu": 4,
    "celu": 4,
    "leaky_relu": 2,
    "addcmul": 3,
    "addcdiv": 3,
    "lerp": 3,
    "upsample_bilinear2d": 8,
    "upsample_trilinear3d": 16,
}
"""Operations per point of composite operators; 1 for all others, 0 for movement."""


def kind(name: str) -> str:
    """`gemm`, `conv`, `attention`, … of an operator named like `aten.addmm`."""
    base = name.rpartition(".")[2]
    if "attention" in base:
        return "attention"
    return next((k for k, names in KINDS.items() if base in names), "elementwise")


def cost(name: str) -> float:
    """Operations per point, 0 for operators that only move data. An in-place variant costs the same."""
    if kind(name) == "movement":
        return 0.0
    base = name.rpartition(".")[2]
    return COSTS.get(base, COSTS.get(base.rstrip("_"), 1.0))
