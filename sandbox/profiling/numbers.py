"""Numbers as Nsight Compute prints them. Pure."""

import math


def number(text: str) -> float | None:
    """A value with thousands commas; None for `n/a`, for words, and for what is not finite."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
