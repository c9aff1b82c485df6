"""Why no counters were read, from what Nsight Compute printed; and what to do. Pure."""

import re

from hiera_mcp.model.profile import CounterStatus

NOT_READ = "Hardware counters were not read"
MISSING = f"{NOT_READ}: ncu was not found. Install Nsight Compute and put ncu on the PATH."
NO_KERNELS = (
    f"{NOT_READ}: no kernel was profiled, because the call launched none on the device's streams. Look at what the call "
    "does; copies and memsets are no kernels."
)
PERMISSION = (
    "Hardware counters are reserved for administrators on this host (ERR_NVGPUCTRPERM). Set "
    "NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module, or run where profiling is allowed; until then the "
    "evidence is static and derived from the time."
)
TIMEOUT = (
    f"{NOT_READ}: profiling was not done in time. A call that takes long, or launches much, is repeated many times."
)
_TEXTS: tuple[tuple[re.Pattern[str], CounterStatus, str], ...] = (
    (re.compile(r"ERR_NVGPUCTRPERM|CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"), "no_permission", PERMISSION),
    (
        re.compile(r"LibraryNotLoaded|Failed to initialize the profiler"),
        "unsupported",
        "Hardware counters cannot be read in this container: ncu cannot initialise its profiler.",
    ),
    (
        re.compile(
            r"Unknown Error on device|driver (?:is|version).*not (?:supported|compatible)|DriverVersionNotSupported"
        ),
        "mismatch",
        f"{NOT_READ}: ncu and the driver do not fit each other. Install the Nsight Compute of the driver's CUDA version.",
    ),
    (re.compile(r"No kernels were profiled"), "no_kernels", NO_KERNELS),
)


def failure(log: str) -> tuple[CounterStatus, str]:
    """How reading ended, by ncu's own output, where it left no report."""
    for pattern, status, advice in _TEXTS:
        if pattern.search(log):
            return status, advice
    error = next((line for line in log.splitlines() if line.startswith("==ERROR==")), "")
    said = error.removeprefix("==ERROR==").strip() or "it left no report"
    return "failed", f"{NOT_READ}: ncu failed ({said[:200]})."
