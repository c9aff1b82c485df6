"""When is an output right? Tolerances by precision, and those that a user gives."""

import ast
import math

from hiera_mcp.errors import RequestError
from hiera_mcp.model.contract import Precision, Tolerance

REFERENCE_FACTOR = 4.0

_LIMITS: dict[Precision, float] = {"float64": 1e-10, "float32": 1e-4, "float16": 1e-2, "bfloat16": 1e-2}


def default_tolerance(precision: Precision, allow_tf32: bool = False) -> Tolerance:
    """The tolerance of a contract: an element may be off by rtol·|oracle| + atol·rms(oracle).

    float32: 1e-4, KernelBench's own figure; plain TF32 products (10 bits of mantissa) do not stay below it. float16 and
    bfloat16: 1e-2, KernelBench's figure; one rounding of a bfloat16 result is 2^-9 = 2e-3. float64: 1e-10, far above
    rounding and far below float32 arithmetic. With TF32 allowed, float32 data is held to 1e-2, as what TF32 does to a
    product is what half precision does.

    The length of a reduction does not enter. The error of a sum of K terms, in any order that adds few of them to a large
    partial sum, grows no faster than u·√K of the result's scale, with u the unit roundoff of the accumulator: 6e-5 for
    K = 10^6 in float32, also under float16 and bfloat16 data when it is accumulated in float32. Accumulating in
    bfloat16 (u = 2^-9) exceeds the limit from K = 25 on, in float16 (u = 2^-11) from K = 400 on: that is meant to fail.

    The limit never falls below `reference_factor` times the reference's own error against float64: another order of
    summation is then still right where the task is ill-conditioned (a mean of normalised data, say), and so is another
    place of rounding where a chain of float16 operators loses more than one rounding.
    """
    limit = 1e-2 if allow_tf32 and precision == "float32" else _LIMITS[precision]
    return Tolerance(
        rtol=limit,
        atol=limit,
        reference_factor=REFERENCE_FACTOR,
        allow_tf32=allow_tf32 and precision == "float32",
    )


def given_tolerance(default: Tolerance, rtol: float | None, atol: float | None, compare: str | None) -> Tolerance:
    """The default, with what the user gives in its place; a figure that is not given stays.

    Args:
        compare: name of a function of the reference file that decides instead of the rule.

    Raises:
        RequestError: a figure is negative or not finite, or both are 0.
    """
    if rtol is None and atol is None and not compare:
        return default
    figures = (default.rtol if rtol is None else rtol, default.atol if atol is None else atol)
    if not all(math.isfinite(v) and v >= 0 for v in figures) or figures == (0, 0):
        what = f"rtol {figures[0]:g} and atol {figures[1]:g} are no tolerance."
        raise RequestError(what, todo="Give figures from 0, at least one of them above 0: 1e-3, for example.")
    return default.model_copy(
        update={"rtol": figures[0], "atol": figures[1], "source": "given", "comparison": compare or ""}
    )


def check_comparison(source: str, name: str) -> None:
    """Raises:
    RequestError: the reference has no function `name` at its top level.
    """
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return  # the tracer says what is wrong with the file
    found = [n.name for n in body if isinstance(n, ast.FunctionDef)]
    if name not in found:
        what = f"The reference has no function `{name}` at its top level."
        todo = f"Define `def {name}(outputs, expected):`, which returns the greatest error as a multiple of what is allowed."
        raise RequestError(what, todo=todo, valid=found)
