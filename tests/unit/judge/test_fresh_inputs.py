"""Inputs that are mapped when they are due, as judge and runner see them, in one process."""

import ctypes
import os

import torch

from hiera_mcp.sandbox.child.fresh_inputs import FreshInputs
from hiera_mcp.sandbox.child.host_platform import HostPlatform

SPECS = [
    {"name": "x", "shape": [3, 5], "dtype": "float32"},
    {"name": "n", "shape": [7], "dtype": "int64"},
    {"name": "x", "shape": [3, 5], "dtype": "float32"},
    {"name": "n", "shape": [7], "dtype": "int64"},
]


class Side:
    """The runner's part: room at one address, and what lies in it."""

    def __init__(self, inputs: FreshInputs) -> None:
        self._platform = HostPlatform()
        self._inputs = inputs
        self._base = self._platform.reserve(inputs.handle.bytes)

    def take(self, numbers: range) -> None:
        place = self._inputs.due(numbers)
        assert place is not None
        start, size, fd = place
        self._platform.map_at(self._base + start, size, os.dup(fd))
        self._inputs.gone_out([start])

    def sees(self, number: int) -> bytes:
        return ctypes.string_at(self._base + self._inputs.layout.offsets[number], self._inputs.layout.sizes[number])


def draw(seed: int) -> list[torch.Tensor]:
    torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]
    return [torch.rand(3, 5), torch.randint(0, 9, (7,))]


def raw(tensor: torch.Tensor) -> bytes:
    return tensor.numpy().tobytes()


def test_a_draw_is_seen_when_it_is_handed_over_and_not_before() -> None:
    inputs = FreshInputs(SPECS)
    runner, second = Side(inputs), range(2, 4)
    first_draw, next_draw = draw(1), draw(2)
    inputs.fill(second, first_draw)
    assert runner.sees(2) == bytes(60)
    runner.take(second)
    assert [runner.sees(2), runner.sees(3)] == [raw(t) for t in first_draw]
    inputs.fill(second, next_draw)
    assert runner.sees(2) == raw(first_draw[0])
    runner.take(second)
    assert [runner.sees(2), runner.sees(3)] == [raw(t) for t in next_draw]
    inputs.free()


def test_what_was_handed_over_is_not_due_again_and_one_set_does_not_touch_another() -> None:
    inputs = FreshInputs(SPECS)
    runner, a, b = Side(inputs), range(2), range(2, 4)
    inputs.fill(a, draw(1))
    inputs.fill(b, draw(2))
    runner.take(a)
    assert inputs.due(a) is None and inputs.due(b) is not None
    assert runner.sees(2) == bytes(60)
    inputs.free()
