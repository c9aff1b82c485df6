"""Why a tool of compute-sanitizer gave no result, from what it printed; and what to do. Pure."""

import re

from hiera_mcp.model.sanitizer import SanitizerStatus

MISSING = "compute-sanitizer was not found. It comes with the CUDA toolkit: install it and put its folder on the PATH."
ON_CPU = "compute-sanitizer looks at kernels of CUDA; on `cpu` there is nothing for it to look at."
NO_GPU = "This host has no GPU that runs the candidate."
MORE = "It stopped printing: there is more than what is told."
TIMEOUT = "It was not done in time: under a checker a call takes 10 to 1000 times as long. Try a smaller case."
SKIPPED = "Not run, because memcheck found accesses that are wrong: correct them first, then look again."
_TEXTS: tuple[tuple[re.Pattern[str], SanitizerStatus, str], ...] = (
    (
        re.compile(r"Device not supported|LibraryNotLoaded"),
        "unsupported",
        "compute-sanitizer does not reach the GPU here, as in some containers. Run it on another host.",
    ),
    (
        re.compile(r"driver version|[Ii]ncompatible|[Vv]ersion mismatch|injection library", re.IGNORECASE),
        "mismatch",
        "compute-sanitizer and the driver do not fit each other. Install the toolkit of the driver's CUDA version.",
    ),
)


def failure(log: str) -> tuple[SanitizerStatus, str]:
    """How a tool ended that did not get to its summary."""
    for pattern, status, advice in _TEXTS:
        if pattern.search(log):
            return status, advice
    m = re.search(r"^=+ (?:Internal )?[Ee]rror:? *(.*)$", log, re.MULTILINE)
    said = m[1].strip() if m else log.strip()[-200:] or "it left no log"
    return "failed", f"compute-sanitizer failed ({said[:200]})."
