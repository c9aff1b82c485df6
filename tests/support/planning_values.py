"""Contracts, outcomes and evidence for tests of the planner. Workloads are written as (kind, share, calls)."""

from collections.abc import Mapping, Sequence
from typing import Any

from hiera_mcp.model.contract import (
    Case,
    Chain,
    Contract,
    Degeneracy,
    Features,
    Floor,
    Operator,
    Parameter,
    Reduction,
    Task,
    TensorSpec,
    Tolerance,
)
from hiera_mcp.model.evaluation import Clocks, Interval, Timing
from hiera_mcp.model.space import Direction, Space
from hiera_mcp.planning.evidence import Outcome

RATES = {"cpu": (2e11, 2e10), "cuda": (19.5e12, 1.555e12)}


def make_contract(
    target: str = "cuda:sm_80",
    work: Sequence[tuple[str, float, int]] = (("elementwise", 1.0, 1),),
    fusion: float = 1.0,
    intensity: float = 0.25,
    tensor_cores: bool = False,
    parameters: int = 2,
    seconds: float = 1e-3,
    dataflow: Mapping[str, Any] | None = None,
) -> Contract:
    peak, bandwidth = RATES[target.partition(":")[0]]
    tensor = TensorSpec(name="x", shape=(8,), dtype="float32")
    return Contract(
        task=Task(name="task", source="class Model: ..."),
        target=target,
        precision="float32",
        parameters=tuple(
            Parameter(
                name=f"p{i}", shape=(8,), dtype="float32", path=f"p.{i}", role="weight", layout="[n]", consumed_by="m"
            )
            for i in range(parameters)
        ),
        cases=(Case(name="case0", inputs=(tensor,), outputs=(tensor,), forward_order=("x",)),),
        tolerance=Tolerance(rtol=1e-4, atol=1e-4, reference_factor=2, allow_tf32=tensor_cores),
        features=_features(work, fusion, intensity, tensor_cores, parameters, dataflow or {}),
        floor=Floor(
            seconds=seconds,
            bound="math" if intensity > peak / bandwidth else "memory",
            memory_seconds=seconds,
            math_seconds=seconds,
            bandwidth=bandwidth,
            peak_flops=peak,
            basis="table",
            arithmetic="bytes / bandwidth",
        ),
        degeneracy=Degeneracy(measured=False, reason="test"),
    )


def _features(
    work: Sequence[tuple[str, float, int]],
    fusion: float,
    intensity: float,
    tensor_cores: bool,
    parameters: int,
    dataflow: Mapping[str, Any],
) -> Features:
    operators = tuple(
        Operator.model_validate(
            {"name": f"aten.{kind}", "kind": kind, "count": n, "flops": 1e6, "bytes": 1e6, "share": share}
        )
        for kind, share, n in work
    )
    return Features(
        operators=operators,
        flops=intensity * 1e6,
        compulsory_bytes=1e6,
        unfused_bytes=fusion * 1e6,
        arithmetic_intensity=intensity,
        launches=sum(n for _, _, n in work),
        parameter_bytes=32 * parameters,
        tensor_core_legal=tensor_cores,
        tensor_core_reason="TF32 is allowed" if tensor_cores else "float32 without TF32",
        **dataflow,
    )


def make_dataflow(
    depth: int = 1, chains: Sequence[tuple[int, int, float]] = (), longest: int = 0, covered: float = 0.0
) -> dict[str, Any]:
    """Features of the dataflow; chains as (length, count, share of the time)."""
    reduction = Reduction(operator="aten.sum", count=1, extent=longest, results=8, contiguous=True)
    return {
        "depth": depth,
        "chains": tuple(
            Chain(operators=("aten.x",), length=n, count=count, saved_bytes=1e6, share=share)
            for n, count, share in chains
        ),
        "reductions": (reduction,) if longest else (),
        "uncovered_share": 1 - covered,
    }


def make_timing(speedup: float, spread: float = 0.02, seconds: float = 1e-3) -> Timing:
    def around(middle: float) -> Interval:
        return Interval(median=middle, low=middle * (1 - spread), high=middle * (1 + spread))

    return Timing(
        candidate=around(seconds / speedup),
        reference=around(seconds),
        speedup=around(speedup),
        pairs=10,
        cache="cold",
        clocks=Clocks(claimed=1, outside=1, floor=1),
    )


def make_outcome(
    name: str = "a",
    speedup: float | None = None,
    *,
    status: str = "passed",
    round: int = 1,
    space: Space = Space.CUDA,
    direction: Direction | None = Direction.MEMORY_TRANSACTIONS,
    spread: float = 0.02,
    **more: Any,
) -> Outcome:
    return Outcome.model_validate(
        {
            "candidate_id": f"k_{name}",
            "name": name,
            "round": round,
            "space": space,
            "direction": direction,
            "status": status,
            "timing": None if speedup is None else make_timing(speedup, spread),
            **more,
        }
    )
