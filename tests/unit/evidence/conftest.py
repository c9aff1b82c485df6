"""A contract, a timing and a build to make profiles from."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hiera_mcp.model.contract import Case, Contract, Degeneracy, Features, Floor, Task, TensorSpec, Tolerance
from hiera_mcp.model.evaluation import Build, Clocks, Device, Interval, KernelResources, Timing
from hiera_mcp.model.space import spaces_of
from hiera_mcp.model.work import ProfileRequest
from hiera_mcp.sandbox.compilers.build import Built


@pytest.fixture
def device() -> Device:
    return Device(name="a device", target="cuda:sm_90a", isolation="bubblewrap")


@pytest.fixture
def make_request() -> Callable[..., ProfileRequest]:
    """make_request(seconds=None, target=…, memory=…, math=…): a floor of `memory` and `math` seconds, a time of `seconds`."""

    def make(
        seconds: float | None = None, target: str = "cuda:sm_90a", memory: float = 1e-3, math: float = 1e-4
    ) -> ProfileRequest:
        return ProfileRequest(
            contract=_contract(target, memory, math),
            files={},
            space=spaces_of(target)[0],
            sources={},
            timing=None if seconds is None else _timing(seconds),
        )

    return make


@pytest.fixture
def make_built(tmp_path: Path) -> Callable[..., Built]:
    def make(kernels: tuple[KernelResources, ...] = (), mix: dict[str, int] | None = None) -> Built:
        build = Build(ok=True, command="nvcc", seconds=1, kernels=kernels)
        return Built(tmp_path, build, (), mix or {}, None, "", "c_abi", "nvcc 13")

    return make


def _contract(target: str, memory: float, math: float) -> Contract:
    x = TensorSpec(name="x", shape=(1024,), dtype="float32")
    return Contract(
        task=Task(name="t", source="class Model: ..."),
        target=target,
        precision="float32",
        parameters=(),
        cases=(Case(name="c", inputs=(x,), outputs=(x.model_copy(update={"name": "y"}),), forward_order=("x",)),),
        tolerance=Tolerance(rtol=1e-5, atol=1e-6, reference_factor=4, allow_tf32=False),
        features=Features(
            operators=(),
            flops=4e9,
            compulsory_bytes=2e9,
            unfused_bytes=4e9,
            arithmetic_intensity=2,
            launches=1,
            parameter_bytes=0,
            tensor_core_legal=True,
            tensor_core_reason="",
        ),
        floor=Floor(
            seconds=max(memory, math),
            bound="memory" if memory >= math else "math",
            memory_seconds=memory,
            math_seconds=math,
            bandwidth=2e12,
            peak_flops=4e13,
            basis="a test",
            arithmetic="a test",
        ),
        degeneracy=Degeneracy(measured=False, reason="a test"),
    )


def _timing(seconds: float) -> Timing:
    def at(value: float) -> Interval:
        return Interval(median=value, low=value, high=value)

    return Timing(
        candidate=at(seconds),
        reference=at(2 * seconds),
        speedup=at(2),
        pairs=10,
        cache="cold",
        clocks=Clocks(claimed=seconds, outside=seconds, floor=1e-6),
    )
