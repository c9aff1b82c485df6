"""Which arithmetic unit may serve a contract: Tensor Core legality, and the rates that a floor assumes."""

from dataclasses import dataclass

from hiera_mcp.model.contract import OperatorKind, Precision
from hiera_mcp.model.hardware import Peaks
from hiera_mcp.model.space import Target, architecture, is_cpu

MATRIX_KINDS: tuple[OperatorKind, ...] = ("gemm", "conv", "attention")
"""Operators that are matrix products at heart."""

TF32_PASSES = 3
"""TF32 products that give float32 accuracy (CUTLASS example 27, `3xTF32`): what a strict float32 candidate could use."""

_VECTOR_UNITS: dict[Precision, tuple[str, ...]] = {
    "float64": ("fp64",),
    "float32": ("fp32",),
    "float16": ("fp16", "fp32"),
    "bfloat16": ("bf16", "fp16", "fp32"),
}


@dataclass(frozen=True)
class Unit:
    """An arithmetic unit and its rate in FLOP per second."""

    name: str
    flops: float


def tensor_cores(target: Target, precision: Precision, allow_tf32: bool, matrix_flops: float) -> tuple[bool, str]:
    """Whether Tensor Cores may be used, and why (or why not)."""
    if is_cpu(target):
        return False, "a cpu has no Tensor Cores"
    if not matrix_flops:
        return False, "no operator of the reference is a matrix product, convolution or attention"
    if precision == "float32" and not allow_tf32:
        return False, (
            "the contract asks for float32 accuracy: a plain TF32, FP16 or BF16 product rounds its operands to 8 to 11 "
            "bits and exceeds the tolerance"
        )
    if precision == "float64" and not has_fp64_tensor_cores(target):
        return False, f"{architecture(target)} has no Tensor Cores for float64"
    arithmetic = {"float64": "FP64", "float32": "TF32", "float16": "FP16", "bfloat16": "BF16"}[precision]
    return True, f"{arithmetic} Tensor Cores are legal for {precision} under this tolerance"


def has_fp64_tensor_cores(target: Target) -> bool:
    """sm_80 and sm_90 have DMMA at a useful rate; consumer parts (sm_86, sm_89, sm_120) do not."""
    return architecture(target).rstrip("af") in ("sm_80", "sm_90", "sm_100")


def vector_unit(peaks: Peaks, precision: Precision) -> Unit:
    """The fastest unit for element by element arithmetic; float32 arithmetic is always allowed for halves."""
    return _fastest(peaks, [(name, 1.0) for name in _VECTOR_UNITS[precision]])


def matrix_unit(peaks: Peaks, precision: Precision, allow_tf32: bool) -> Unit:
    """The fastest unit that a product of this accuracy may use."""
    tensor = {"float64": "fp64_tensor", "float16": "fp16_tensor", "bfloat16": "bf16_tensor"}.get(precision)
    choices = [(name, 1.0) for name in _VECTOR_UNITS[precision]]
    if tensor:
        choices.append((tensor, 1.0))
    else:
        choices.append(("tf32_tensor", 1.0 if allow_tf32 else 1.0 / TF32_PASSES))
    return _fastest(peaks, choices)


def _fastest(peaks: Peaks, choices: list[tuple[str, float]]) -> Unit:
    known = [Unit(_label(name, part), peaks.flops[name] * part) for name, part in choices if name in peaks.flops]
    return max(known, key=lambda u: u.flops, default=Unit("fp32", peaks.flops["fp32"]))


def _label(name: str, part: float) -> str:
    return name if part == 1.0 else f"{name} in {round(1 / part)} passes"
