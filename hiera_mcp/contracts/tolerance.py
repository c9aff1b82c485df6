"""When is an output right? Default tolerances by precision."""

from hiera_mcp.model.contract import Precision, Tolerance

REFERENCE_FACTOR = 4.0

_LIMITS: dict[Precision, float] = {"float64": 1e-10, "float32": 1e-4, "float16": 1e-2, "bfloat16": 1e-2}


def default_tolerance(precision: Precision, allow_tf32: bool = False) -> Tolerance:
    """The tolerance of a contract: an element may be off by rtol·|oracle| + atol·rms(oracle).

    float32: 1e-4, KernelBench's own figure; a float32 sum of 10^6 terms in any sensible order stays below it, plain
    TF32 products (10 bits of mantissa) do not. float16 and bfloat16: 1e-2, KernelBench's figure; one rounding of a
    bfloat16 result is 2^-9 = 2e-3. float64: 1e-10, far above rounding and far below float32 arithmetic. With TF32
    allowed, float32 data is held to 1e-2, as what TF32 does to a product is what half precision does.

    The limit never falls below `reference_factor` times the reference's own error against float64: another order of
    summation is then still right where the task is ill-conditioned (a mean of normalised data, say).
    """
    limit = 1e-2 if allow_tf32 and precision == "float32" else _LIMITS[precision]
    return Tolerance(
        rtol=limit,
        atol=limit,
        reference_factor=REFERENCE_FACTOR,
        allow_tf32=allow_tf32 and precision == "float32",
    )
