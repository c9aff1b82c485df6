"""The floor of a contract on each GPU of the tables: which unit it rests on, and its arithmetic."""

from collections.abc import Callable

import pytest

from hiera_mcp.contracts.build import build_contract
from hiera_mcp.contracts.floor import duration, floor_of, quantity
from hiera_mcp.contracts.units import matrix_unit, vector_unit
from hiera_mcp.knowledge_base import hardware
from hiera_mcp.model.contract import Precision, Task
from hiera_mcp.model.hardware import Peaks
from hiera_mcp.model.work import Trace

GPUS = {gpu.name: hardware.peaks(gpu) for gpu in hardware.gpus()}
M, K, N = 512, 1024, 256


@pytest.fixture
def product(trace: Callable[..., Trace], task_text: Callable[..., str]) -> Callable[[Precision], Trace]:
    source = task_text(
        init=f"self.f = nn.Linear({K}, {N}, bias=False)", forward="return self.f(x)", inputs=f"[torch.rand({M}, {K})]"
    )
    return lambda precision: trace(source, precision=precision)


def test_there_is_a_floor_for_each_gpu_of_the_tables(product: Callable[[Precision], Trace]) -> None:
    traced = product("float32")
    contract = build_contract(
        Task(name="t", source="x"), "cuda:sm_80", "float32", traced, next(iter(GPUS.values())), 1 << 40, others=GPUS
    )
    assert [f.device for f in contract.floors] == list(GPUS)
    for floor in contract.floors:
        peaks = GPUS[floor.device]
        unit = matrix_unit(peaks, "float32", False)
        moved, work = 4 * (M * K + K * N + M * N), 2 * M * K * N
        assert floor.memory_seconds == pytest.approx(moved / peaks.bandwidth)
        assert floor.math_seconds == pytest.approx(work / unit.flops)
        assert floor.seconds == max(floor.memory_seconds, floor.math_seconds)
        assert floor.bound == ("memory" if floor.memory_seconds >= floor.math_seconds else "math")
        assert floor.basis == peaks.basis
        assert floor.arithmetic == (
            f"max({quantity(moved, 'B')} / {quantity(peaks.bandwidth, 'B/s')} = {duration(moved / peaks.bandwidth)}, "
            f"{quantity(work, 'FLOP')} / {quantity(unit.flops, 'FLOP/s')} ({unit.name}) = {duration(work / unit.flops)})"
        )


@pytest.mark.parametrize("name", list(GPUS))
@pytest.mark.parametrize(
    ("precision", "allow_tf32", "matrix", "vector"),
    [
        ("float32", False, {"tf32_tensor in 3 passes", "fp32"}, {"fp32"}),
        ("float32", True, {"tf32_tensor"}, {"fp32"}),
        ("float16", False, {"fp16_tensor"}, {"fp16", "fp32"}),
        ("bfloat16", False, {"bf16_tensor"}, {"bf16", "fp16", "fp32"}),
        ("float64", False, {"fp64_tensor", "fp64"}, {"fp64"}),
    ],
)
def test_precision_and_tf32_choose_the_unit(
    name: str, precision: Precision, allow_tf32: bool, matrix: set[str], vector: set[str]
) -> None:
    peaks = GPUS[name]
    product, rest = matrix_unit(peaks, precision, allow_tf32), vector_unit(peaks, precision)
    assert product.name in matrix
    assert rest.name in vector
    assert product.flops >= rest.flops


def test_half_precision_halves_the_traffic(product: Callable[[Precision], Trace]) -> None:
    peaks = next(iter(GPUS.values()))
    full = floor_of(product("float32"), "float32", peaks, False)
    half = floor_of(product("float16"), "float16", peaks, False)
    assert half.memory_seconds == pytest.approx(full.memory_seconds / 2)


def test_a_strict_product_may_use_the_tensor_cores_three_times() -> None:
    peaks = Peaks(bandwidth=1, flops={"fp32": 10, "tf32_tensor": 60}, basis="round numbers")
    assert matrix_unit(peaks, "float32", False).flops == 20
    slow = Peaks(bandwidth=1, flops={"fp32": 30, "tf32_tensor": 60}, basis="round numbers")
    assert matrix_unit(slow, "float32", False).name == "fp32"


def test_matrix_and_other_work_run_side_by_side(trace: Callable[..., Trace], task_text: Callable[..., str]) -> None:
    traced = trace(task_text(forward="return F.gelu(x @ x.mT)", inputs="[torch.rand(64, 2)]"))
    peaks = Peaks(bandwidth=1e30, flops={"fp32": 1.0, "tf32_tensor": 100.0}, basis="round numbers")
    floor = floor_of(traced, "float32", peaks, True)
    assert floor.math_seconds == 5 * 64 * 64  # the activation on fp32; the product takes 2 * 2 * 64 * 64 / 100
    assert "(fp32)" in floor.arithmetic
    assert floor.bound == "math"
