"""Facts about the machine that the judge runs on."""

import os
from pathlib import Path
from typing import Any


def device_facts(device: str) -> dict[str, Any]:
    """device_name, torch, driver and cuda, for the `ready` message."""
    import torch

    version: str = torch.__version__
    if device == "cpu":
        return {"device_name": processor_name(), "torch": version, "driver": None, "cuda": None}
    name = torch.cuda.get_device_name(torch.device(device))
    return {"device_name": name, "torch": version, "driver": _driver(), "cuda": torch.version.cuda}


def select(device: str) -> None:
    """Make a GPU the current one, for everything that names no device."""
    if device != "cpu":
        import torch

        torch.cuda.set_device(torch.device(device))


def processor_name() -> str:
    """The processor's name as Linux reports it."""
    for line in _text("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return os.uname().machine


def processor_mhz() -> float | None:
    """Mean clock of the processors as Linux reports it; None where it does not."""
    lines = [line for line in _text("/proc/cpuinfo").splitlines() if line.startswith("cpu MHz")]
    clocks = [float(line.partition(":")[2]) for line in lines]
    return sum(clocks) / len(clocks) if clocks else None


def last_level_cache() -> int:
    """Bytes of the largest cache that the processor reports; 32 MiB when it reports none."""
    names = ("SC_LEVEL4_CACHE_SIZE", "SC_LEVEL3_CACHE_SIZE", "SC_LEVEL2_CACHE_SIZE")
    sizes = [os.sysconf(n) for n in names if n in os.sysconf_names]
    return max(sizes, default=0) or 32 << 20


def l2_cache(device: str) -> int:
    """Bytes of a GPU's L2 cache."""
    import torch

    cuda: Any = torch.cuda
    return cuda.get_device_properties(torch.device(device)).L2_cache_size


def free_memory(device: str) -> int:
    """Bytes that can be allocated now."""
    if device != "cpu":
        import torch

        return torch.cuda.mem_get_info(torch.device(device))[0]
    for line in _text("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _driver() -> str | None:
    """Version of the NVIDIA kernel driver, where /proc shows it."""
    for word in _text("/proc/driver/nvidia/version").split():
        if word.count(".") >= 1 and word.replace(".", "").isdigit():
            return word
    return None


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
