"""Values to store: a small but complete contract, a decision, outcomes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hiera_mcp.model.contract import (
    Case,
    Contract,
    Degeneracy,
    Features,
    Floor,
    Task,
    TensorSpec,
    Tolerance,
)
from hiera_mcp.model.evaluation import Build, Clocks, Evaluation, Interval, Margin, Status, Timing, Verification
from hiera_mcp.model.plan import Decision
from hiera_mcp.store import NewCandidate, Store


@pytest.fixture
def contract() -> Contract:
    x = TensorSpec(name="x", shape=(4, 8), dtype="float32")
    y = TensorSpec(name="out", shape=(4, 8), dtype="float32")
    return Contract(
        task=Task(name="relu", source="class Model: ..."),
        target="cpu",
        precision="float32",
        parameters=(),
        cases=(Case(name="default", inputs=(x,), outputs=(y,), forward_order=("x",)),),
        tolerance=Tolerance(rtol=1e-4, atol=1e-4, reference_factor=4, allow_tf32=False),
        features=Features(
            operators=(),
            flops=32,
            compulsory_bytes=256,
            unfused_bytes=256,
            arithmetic_intensity=0.125,
            launches=1,
            parameter_bytes=0,
            tensor_core_legal=False,
            tensor_core_reason="no matrix product",
        ),
        floor=Floor(
            seconds=1e-8,
            bound="memory",
            memory_seconds=1e-8,
            math_seconds=1e-9,
            bandwidth=2.56e10,
            peak_flops=1e11,
            basis="measured on this host",
            arithmetic="256 B / 25.6 GB/s",
        ),
        degeneracy=Degeneracy(measured=False, reason="not asked for"),
    )


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Callable[[], Store]]:
    opened: list[Store] = []

    def open_one() -> Store:
        opened.append(Store.open(tmp_path / "hiera.db", tmp_path / "blobs"))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Callable[[], Store]) -> Store:
    return open_store()


@pytest.fixture
def decide() -> Callable[..., Decision]:
    def make(kind: str = "space", choice: str = "cpp") -> Decision:
        return Decision.model_validate(
            {
                "kind": kind,
                "options": [],
                "recommended": choice,
                "choice": choice,
                "decided_by": "server",
                "reason": "highest total",
                "rubric_version": "1",
            }
        )

    return make


@pytest.fixture
def build() -> Build:
    return Build(ok=True, command="g++ …", seconds=0.5, log="a long compiler log")


@pytest.fixture
def passed(build: Build) -> Evaluation:
    second = Interval(median=1e-3, low=0.9e-3, high=1.1e-3)
    return Evaluation(
        status=Status.PASSED,
        reason="all checks passed",
        build=build,
        log="printed by the candidate",
        verification=Verification(
            trials=4, worst=Margin(output="out", trial="signed 0", error=0.2, reference_error=0.1), oracle="float64"
        ),
        timing=Timing(
            candidate=second,
            reference=Interval(median=2e-3, low=1.9e-3, high=2.1e-3),
            speedup=Interval(median=2.0, low=1.8, high=2.2),
            pairs=9,
            cache="cold",
            clocks=Clocks(claimed=1e-3, outside=1e-3, floor=1e-8),
        ),
    )


@pytest.fixture
def new() -> Callable[[str], NewCandidate]:
    return lambda name: NewCandidate(name=name, sources={"cpu_source.cpp": f"// {name}"})
