"""Device memory shared between two sandboxes: CUDA virtual memory management with file descriptors.

Opening a legacy IPC handle of one sandbox in another one failed with "invalid device context" (measured on an H200; both
processes had pid 2 in their own namespaces, which is the likely cause, not a proved one). A descriptor needs no common namespace, travels by SCM_RIGHTS like a
memfd, and can be mapped read-only: a kernel that writes to such a mapping faults. (CUDA driver API, "Virtual Memory
Management": cuMemCreate, cuMemExportToShareableHandle, cuMemMap, cuMemSetAccess.) The layouts below are from cuda.h.
"""

import ctypes
import os
from ctypes import byref, c_int, c_size_t, c_ubyte, c_uint64, c_ushort, c_void_p
from typing import Any

_PINNED, _ON_DEVICE, _POSIX_FD, _MINIMUM = 1, 1, 1, 0
_READ, _READ_WRITE = 1, 3


class DriverError(Exception):
    """A call of the CUDA driver failed."""


class _Location(ctypes.Structure):
    _fields_ = (("type", c_int), ("id", c_int))


class _AllocFlags(ctypes.Structure):
    _fields_ = (("compression", c_ubyte), ("rdma", c_ubyte), ("usage", c_ushort), ("reserved", c_ubyte * 4))


class _AllocationProperties(ctypes.Structure):
    _fields_ = (
        ("type", c_int),
        ("handle_types", c_int),
        ("location", _Location),
        ("win32_meta_data", c_void_p),
        ("flags", _AllocFlags),
    )


class _Access(ctypes.Structure):
    _fields_ = (("location", _Location), ("flags", c_int))


class Mapping:
    """A range of device addresses of this process, backed by shared memory.

    Attributes:
        address: the first device address.
        size: bytes, a multiple of the device's granularity (2 MiB on an H200).
    """

    def __init__(self, handle: c_uint64, size: int, device: int, writable: bool) -> None:
        self._handle = handle
        self.size = size
        reserved = c_uint64()
        _call("cuMemAddressReserve", byref(reserved), c_size_t(size), c_size_t(0), c_uint64(0), c_uint64(0))
        self.address: int = reserved.value
        _call("cuMemMap", reserved, c_size_t(size), c_size_t(0), handle, c_uint64(0))
        access = _Access(_Location(_ON_DEVICE, device), _READ_WRITE if writable else _READ)
        _call("cuMemSetAccess", reserved, c_size_t(size), byref(access), c_size_t(1))

    def free(self) -> None:
        """Give the range back; the memory itself goes once no process maps it. Safe to call twice."""
        if self.address:
            address, self.address = c_uint64(self.address), 0
            _call("cuMemUnmap", address, c_size_t(self.size))
            _call("cuMemAddressFree", address, c_size_t(self.size))
            _call("cuMemRelease", self._handle)


def create(size: int, device: int) -> tuple[Mapping, int]:
    """New memory of at least `size` bytes on `device`, mapped for reading and writing, and its descriptor.

    The device must have a current context. The caller closes the descriptor.

    Raises:
        DriverError: out of memory, or the device cannot share memory by descriptor.
    """
    properties = _AllocationProperties(_PINNED, _POSIX_FD, _Location(_ON_DEVICE, device), None, _AllocFlags())
    unit = c_size_t()
    _call("cuMemGetAllocationGranularity", byref(unit), byref(properties), c_int(_MINIMUM))
    whole = -(-size // unit.value) * unit.value
    handle, fd = c_uint64(), c_int()
    _call("cuMemCreate", byref(handle), c_size_t(whole), byref(properties), c_uint64(0))
    _call("cuMemExportToShareableHandle", byref(fd), handle, c_int(_POSIX_FD), c_uint64(0))
    return Mapping(handle, whole, device, writable=True), fd.value


def open_shared(fd: int, size: int, device: int, writable: bool) -> Mapping:
    """Map memory that another process created, and close the descriptor.

    Args:
        fd: the descriptor as it arrived.
        size: the `size` of the creator's Mapping.
        device: the GPU as this process sees it; a context must be current.
        writable: False maps it read-only: kernels that write to it fault.

    Raises:
        DriverError: the descriptor is no such memory.
    """
    handle = c_uint64()
    try:
        _call("cuMemImportFromShareableHandle", byref(handle), c_void_p(fd), c_int(_POSIX_FD))
    finally:
        os.close(fd)
    return Mapping(handle, size, device, writable)


def _call(function: str, *args: Any) -> None:
    driver = ctypes.CDLL("libcuda.so.1")
    code = getattr(driver, function)(*args)
    if code:
        raise DriverError(f"{function} failed with CUDA error {code} ({_name(driver, code)})")


def _name(driver: ctypes.CDLL, code: int) -> str:
    text = ctypes.c_char_p()
    driver.cuGetErrorName(c_int(code), byref(text))
    return (text.value or b"unknown").decode()
