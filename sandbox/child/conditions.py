"""The state of the device around and between timed calls: what it ran at, and what held it back."""

import os
from collections.abc import Mapping
from typing import Any, Protocol

from hiera_mcp.sandbox.child.machine import processor_mhz
from hiera_mcp.sandbox.child.nvml import Nvml, NvmlFailed


class _Source(Protocol):
    def readings(self) -> dict[str, float]: ...

    def limits(self) -> tuple[str, ...]: ...


class Conditions:
    """Readings of one measurement, in order.

    Args:
        device: `cpu` or `cuda:K`.
    """

    def __init__(self, device: str) -> None:
        self._readings: list[dict[str, float]] = []
        self._limits: dict[str, None] = {}
        self.missing = ""
        """Why nothing, or no more, could be read; empty while all is well."""
        self._source: _Source | None = None
        try:
            self._source = _Processor() if device == "cpu" else Nvml(int(device.partition(":")[2] or 0))
        except NvmlFailed as e:
            self.missing = f"clocks, temperature and power of the GPU: {e}"

    def look(self) -> None:
        """Read once. On a GPU this must come right after its work: an idle one lowers its clocks."""
        if self._source is None or self.missing:
            return
        try:
            self._readings.append(self._source.readings())
            self._limits |= dict.fromkeys(self._source.limits())
        except NvmlFailed as e:
            self.missing = f"clocks, temperature and power of the GPU: {e}"

    @property
    def limits(self) -> tuple[str, ...]:
        """What held the clocks back at any reading."""
        return tuple(self._limits)

    def summary(self) -> dict[str, float]:
        """NAME_before, NAME_after, NAME_lowest and NAME_highest for everything that was read."""
        if not self._readings:
            return {}
        return {
            f"{name}_{when}": value
            for name in self._readings[0]
            for when, value in _spread([r[name] for r in self._readings if name in r]).items()
        }

    def in_words(self) -> str:
        """`1980 MHz, 41 C`; empty where nothing of that was read."""
        said = self.summary()
        low, high = said.get("sm_mhz_lowest"), said.get("sm_mhz_highest")
        if low is None or high is None:
            return ""
        clock = f"{high:.0f} MHz" if low == high else f"{low:.0f} to {high:.0f} MHz"
        held = f", held back by {' and '.join(self.limits)}" if self.limits else ""
        return f"{clock}, {said['temperature_c_highest']:.0f} C{held}"


def _spread(values: list[float]) -> Mapping[str, float]:
    return {"before": values[0], "after": values[-1], "lowest": min(values), "highest": max(values)}


class _Processor:
    """What Linux tells of the processor: its clock where it is known, and how busy the machine is."""

    def readings(self) -> dict[str, float]:
        found: dict[str, Any] = {"load": os.getloadavg()[0]}
        mhz = processor_mhz()
        return found | ({} if mhz is None else {"processor_mhz": mhz})

    def limits(self) -> tuple[str, ...]:
        return ()
