"""A GPU's clocks, temperature, power and what holds its clocks back: NVML through ctypes.

Functions and bits are those of nvml.h ("NVML API Reference", Device Queries; nvmlClocksEventReasons).
"""

import ctypes
from ctypes import byref, c_char_p, c_int, c_uint, c_ulonglong, c_void_p

_SM, _MEMORY = 1, 2
_CORE_TEMPERATURE = 0

LIMITS = {
    0x02: "application clocks setting",
    0x04: "software power cap",
    0x08: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clock setting",
}
"""What may hold the clocks below the greatest. Idleness (0x01) does so too, but not while something runs."""


class NvmlFailed(Exception):
    """NVML is not there, or does not answer; the text says what was asked."""


class Nvml:
    """One GPU as NVML sees it.

    Args:
        index: the GPU as CUDA numbers it in this process; NVML may number otherwise, so it is found by its bus address.

    Raises:
        NvmlFailed: the library is missing, or it cannot reach the GPU.
    """

    def __init__(self, index: int) -> None:
        try:
            self._library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError as e:
            raise NvmlFailed(f"libnvidia-ml.so.1 cannot be loaded: {e}") from e
        self._device = c_void_p()
        self._call("nvmlInit_v2")
        self._call("nvmlDeviceGetHandleByPciBusId_v2", c_char_p(_bus_address(index)), byref(self._device))

    def readings(self) -> dict[str, float]:
        """sm_mhz, memory_mhz, temperature_c, power_w at this moment.

        Raises:
            NvmlFailed: it does not answer.
        """
        return {
            "sm_mhz": self._number("nvmlDeviceGetClockInfo", c_int(_SM)),
            "memory_mhz": self._number("nvmlDeviceGetClockInfo", c_int(_MEMORY)),
            "temperature_c": self._number("nvmlDeviceGetTemperature", c_int(_CORE_TEMPERATURE)),
            "power_w": self._number("nvmlDeviceGetPowerUsage") / 1e3,
        }

    def limits(self) -> tuple[str, ...]:
        """What holds the clocks back at this moment, in the words of LIMITS."""
        bits = c_ulonglong()
        self._call("nvmlDeviceGetCurrentClocksThrottleReasons", self._device, byref(bits))
        return tuple(name for bit, name in LIMITS.items() if bits.value & bit)

    def _number(self, function: str, *which: object) -> float:
        value = c_uint()
        self._call(function, self._device, *which, byref(value))
        return float(value.value)

    def _call(self, function: str, *args: object) -> None:
        try:
            code = getattr(self._library, function)(*args)
        except AttributeError as e:
            raise NvmlFailed(f"this driver's NVML has no {function}") from e
        if code:
            self._library.nvmlErrorString.restype = c_char_p
            raise NvmlFailed(f"{function} failed: {self._library.nvmlErrorString(c_int(code)).decode()}")


def _bus_address(index: int) -> bytes:
    """Where the GPU sits on the PCI bus, by the CUDA driver."""
    driver = ctypes.CDLL("libcuda.so.1")
    device, text = c_int(), ctypes.create_string_buffer(64)
    code = driver.cuInit(c_uint(0)) or driver.cuDeviceGet(byref(device), c_int(index))
    code = code or driver.cuDeviceGetPCIBusId(text, c_int(len(text)), device)
    if code:
        raise NvmlFailed(f"the CUDA driver does not name the GPU's bus address (error {code})")
    return text.value
