"""The runner's own copies of the shared buffers: exact sizes, filled from the shared ones, outputs handed back."""

import ctypes
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.model.contract import ITEM_BYTES
from hiera_mcp.sandbox.child.host_platform import HostPlatform
from hiera_mcp.sandbox.child.private_buffers import WIDTHS, PrivateBuffers, tensor_bytes


@dataclass
class Recorded:
    """The host's memory, and what was asked of it."""

    platform: HostPlatform = field(default_factory=HostPlatform)
    sizes: list[int] = field(default_factory=list[int])

    def allocate(self, size: int) -> int:
        self.sizes.append(size)
        return self.platform.allocate(size)

    def copy(self, target: int, source: int, size: int) -> None:
        self.platform.copy(target, source, size)


INTERFACE: dict[str, Any] = {
    "parameters": [{"shape": [3], "dtype": "float32"}],
    "cases": [{"inputs": [{"shape": [5], "dtype": "uint8"}], "outputs": [{"shape": [2, 2], "dtype": "uint8"}]}],
}


def test_each_tensor_has_an_allocation_of_its_exact_size_and_contents_go_both_ways() -> None:
    memory = Recorded()
    shared = {name: ctypes.create_string_buffer(raw, len(raw)) for name, raw in SHARED.items()}
    at = {name: ctypes.addressof(buffer) for name, buffer in shared.items()}
    buffers = PrivateBuffers(memory, INTERFACE)
    params = buffers.params([at["param"]])
    case = buffers.case(0, {"workspace": 1, "sets": [{"inputs": [at["input"]], "outputs": [at["output"]]}]}, 77)
    buffers.take_params()
    buffers.take_inputs(0, 0)
    own = case["sets"][0]
    assert memory.sizes == [12, 5, 4, 77]
    assert case["workspace"] not in (None, 1)
    assert ctypes.string_at(params[0], 12) == SHARED["param"]
    assert ctypes.string_at(own["inputs"][0], 5) == SHARED["input"]
    ctypes.memmove(own["outputs"][0], b"done", 4)
    assert shared["output"].raw == b"...."
    buffers.give_outputs(0, 0)
    assert shared["output"].raw == b"done"


SHARED = {"param": b"parameters!!", "input": b"input", "output": b"...."}


def test_a_case_without_workspace_gets_none() -> None:
    buffers = PrivateBuffers(Recorded(), INTERFACE)
    assert buffers.case(0, {"workspace": None, "sets": []}, 0)["workspace"] is None


@given(st.sampled_from(sorted(ITEM_BYTES)), st.lists(st.integers(0, 9), max_size=4))
def test_sizes_are_those_of_the_contract(dtype: Any, shape: list[int]) -> None:
    count = 1
    for d in shape:
        count *= d
    assert tensor_bytes({"dtype": dtype, "shape": shape}) == count * ITEM_BYTES[dtype]
    assert set(WIDTHS) == set(ITEM_BYTES)
