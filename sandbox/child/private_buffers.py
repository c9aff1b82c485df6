"""Copies of the shared buffers in memory of the runner's own, for a checker of memory accesses.

In the shared blocks every tensor lies between guard zones that belong to the same allocation: a checker sees nothing wrong
in an access that runs a few elements too far. It also does not see that the judge, another process, has written them. So the
candidate gets one allocation of the exact size for each tensor, filled by this process. Outputs and workspaces are left
as they were allocated, so that a read before any write is one of uninitialised memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Spec = dict[str, Any]
"""A TensorSpec as JSON: shape, dtype."""

WIDTHS = {
    **dict.fromkeys(("bool", "uint8", "int8"), 1),
    **dict.fromkeys(("int16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "float32"), 4),
    **dict.fromkeys(("int64", "float64"), 8),
}
"""Bytes of an element; the runner of a plain candidate has no torch to ask."""


class Memory(Protocol):
    """What a platform offers for it."""

    def allocate(self, size: int) -> int:
        """The address of new memory of exactly `size` bytes, not initialised."""
        ...

    def copy(self, target: int, source: int, size: int) -> None: ...


@dataclass(frozen=True)
class Copy:
    """A tensor in shared memory, and the one that the candidate works on."""

    shared: int
    own: int
    size: int


class PrivateBuffers:
    """The copies of all tensors of one candidate.

    Args:
        memory: where the copies are made.
        interface: the contract's parameters and cases, with shapes.
    """

    def __init__(self, memory: Memory, interface: dict[str, Any]) -> None:
        self._memory = memory
        self._interface = interface
        self._params: list[Copy] = []
        self._inputs: dict[tuple[int, int], list[Copy]] = {}
        self._outputs: dict[tuple[int, int], list[Copy]] = {}

    def params(self, shared: Sequence[int]) -> list[int]:
        """Copies for the parameters at these addresses; theirs."""
        self._params = self._copies(shared, self._interface["parameters"])
        return [c.own for c in self._params]

    def case(self, number: int, shared: dict[str, Any], workspace: int) -> dict[str, Any]:
        """The buffers of a case as the candidate gets them; `workspace` is its size in bytes."""
        spec = self._interface["cases"][number]
        sets: list[dict[str, list[int]]] = []
        for s, buffers in enumerate(shared["sets"]):
            self._inputs[number, s] = self._copies(buffers["inputs"], spec["inputs"])
            self._outputs[number, s] = self._copies(buffers["outputs"], spec["outputs"])
            sets.append(
                {
                    "inputs": [c.own for c in self._inputs[number, s]],
                    "outputs": [c.own for c in self._outputs[number, s]],
                }
            )
        return {"workspace": self._memory.allocate(workspace) if workspace else None, "sets": sets}

    def take_params(self) -> None:
        """Bring the parameters that the judge has written."""
        self._take(self._params)

    def take_inputs(self, case: int, s: int) -> None:
        """Bring the inputs of a set."""
        self._take(self._inputs[case, s])

    def give_outputs(self, case: int, s: int) -> None:
        """Hand the outputs of a set to the judge."""
        for c in self._outputs[case, s]:
            self._memory.copy(c.shared, c.own, c.size)

    def _take(self, copies: Sequence[Copy]) -> None:
        for c in copies:
            self._memory.copy(c.own, c.shared, c.size)

    def _copies(self, shared: Sequence[int], specs: Sequence[Spec]) -> list[Copy]:
        sizes = [tensor_bytes(s) for s in specs]
        return [Copy(a, self._memory.allocate(max(n, 1)), n) for a, n in zip(shared, sizes, strict=True)]


def tensor_bytes(spec: Spec) -> int:
    """Size of a tensor in bytes."""
    size = WIDTHS[spec["dtype"]]
    for d in spec["shape"]:
        size *= d
    return size
