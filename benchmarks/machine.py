"""What a result was measured on."""

import os
import platform
import subprocess
from importlib import metadata

PACKAGES = ("torch", "cupy-cuda13x", "cupy-cuda12x", "mcp", "sqlite-utils", "pydantic")


def describe() -> dict[str, object]:
    """Processor, GPU, driver and versions; only what this host has."""
    return {
        "processor": _processor(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "gpus": _lines(
            "nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm", "--format=csv,noheader"
        ),
        "nvcc": (_lines("nvcc", "--version") or [""])[-1],
        "gxx": (_lines("g++", "--version") or [""])[0],
        "packages": {p: v for p in PACKAGES if (v := _version(p))},
    }


def _processor() -> str:
    with open("/proc/cpuinfo") as f:
        names = [line.partition(":")[2].strip() for line in f if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _lines(*command: str) -> list[str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.strip().splitlines()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
