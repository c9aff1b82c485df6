"""The judge's buffers: shared blocks ("arenas") that hold the tensors of one evaluation. The judge owns them all.

On `cpu` an arena is a memfd (inputs are handed over call by call, see fresh_inputs.py). One that the runner may only read is sealed with F_SEAL_FUTURE_WRITE: the judge's mapping,
made before, still writes; no later mapping, write or mprotect can (memfd_create(2), fcntl(2)). On CUDA an arena is
device memory shared by a descriptor (device_memory.py), which the runner maps read-only where it may only read; but its
own process could map it anew, so the content is compared with the judge's own copy after the calls.
"""

import fcntl
import math
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hiera_mcp.sandbox.child import device_memory
from hiera_mcp.sandbox.child.layout import Layout, lay_out

_ADD_SEALS, _SEAL, _SHRINK, _GROW, _FUTURE_WRITE = 1033, 0x1, 0x2, 0x4, 0x10

Spec = dict[str, Any]
"""A TensorSpec as JSON: name, shape, dtype."""


@dataclass(frozen=True)
class Handle:
    """What the runner needs to map an arena."""

    bytes: int
    writable: bool
    fd: int
    """A memfd on cpu, shared device memory on CUDA; -1: nothing yet, the runner only keeps the room."""


class Arena:
    """One shared block with its tensors.

    Args:
        specs: what to hold, in order.
        writable: whether the runner may write.
        device: `cpu` or `cuda:K`.
    """

    def __init__(self, specs: Sequence[Spec], writable: bool, device: str) -> None:
        self.specs = tuple(specs)
        self.layout: Layout = lay_out([spec_bytes(s) for s in specs])
        self._block = (
            _CudaBlock(self.layout.total, device) if device != "cpu" else MemfdBlock(self.layout.total, writable)
        )
        self.raw: Any = self._block.raw
        self.handle = Handle(self._block.size, writable, self._block.fd)
        self.views = [view_of(self.raw, offset, s) for s, offset in zip(specs, self.layout.offsets, strict=True)]
        for start, stop in self.layout.gaps:
            self.raw[start:stop].random_(0, 256)
        self._guards = [self.raw[start:stop].clone() for start, stop in self.layout.gaps]

    def damaged_guards(self) -> list[str]:
        """One line per guard zone whose bytes have changed."""
        lines: list[str] = []
        for i, (start, stop) in enumerate(self.layout.gaps):
            changed = (self.raw[start:stop] != self._guards[i]).nonzero().flatten()
            if len(changed):
                lines.append(self._damage(i, start + int(changed[0]), len(changed)))
                self.raw[start:stop].copy_(self._guards[i])
        return lines

    def _damage(self, gap: int, at: int, count: int) -> str:
        """Name the tensor that a damaged guard belongs to: the one that ends before it, else the one that starts after."""
        if gap:
            spec, end = self.specs[gap - 1], self.layout.offsets[gap - 1] + self.layout.sizes[gap - 1]
            return f"{count} bytes were overwritten in the guard zone {at - end} bytes past the end of {spec['name']}"
        distance = self.layout.offsets[0] - at
        return f"{count} bytes were overwritten in the guard zone {distance} bytes before the start of {self.specs[0]['name']}"

    def free(self) -> None:
        """Give the memory back. The runner must have ended, or closed its handle."""
        self.views = []
        self.raw = None
        self._block.free()


class MemfdBlock:
    """Shared host memory."""

    def __init__(self, size: int, writable: bool) -> None:
        import torch

        self.size = size
        self.fd: int = os.memfd_create("hiera", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(self.fd, size)
        self.raw: Any = torch.frombuffer(mmap.mmap(self.fd, size), dtype=torch.uint8)
        fcntl.fcntl(self.fd, _ADD_SEALS, _SEAL | _SHRINK | _GROW | (0 if writable else _FUTURE_WRITE))

    def close_descriptor(self) -> None:
        """What was mapped stays so."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def free(self) -> None:
        self.raw = None  # the tensor keeps the mapping alive, so this ends both
        self.close_descriptor()


class _CudaBlock:
    """Shared device memory. Not torch's allocator: that one hands out parts of larger allocations."""

    def __init__(self, size: int, device: str) -> None:
        import torch

        torch.cuda.set_device(device)
        torch.cuda.current_stream().synchronize()  # creates the context
        self._mapping, self.fd = device_memory.create(size, torch.cuda.current_device())
        self.size = self._mapping.size
        self.raw: Any = torch.as_tensor(_CudaMemory(self._mapping.address, size), device=device)

    def free(self) -> None:
        self.raw = None
        self._mapping.free()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class _CudaMemory:
    """Lets torch view device memory that it does not own (CUDA array interface, version 3)."""

    def __init__(self, pointer: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (pointer, False),
            "strides": None,
            "version": 3,
        }


def view_of(raw: Any, offset: int, spec: Spec) -> Any:
    """The tensor that lies `offset` bytes behind the start of `raw`."""
    return raw[offset : offset + spec_bytes(spec)].view(torch_dtype(spec["dtype"])).view(tuple(spec["shape"]))


def torch_dtype(name: str) -> Any:
    """`float32` → torch.float32."""
    import torch

    return getattr(torch, name)


def spec_elements(spec: Spec) -> int:
    """Elements of a tensor."""
    return math.prod(spec["shape"])


def spec_bytes(spec: Spec) -> int:
    """Size of a tensor in bytes."""
    return spec_elements(spec) * torch_dtype(spec["dtype"]).itemsize
