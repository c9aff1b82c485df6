"""Random and chosen records of rounds, for tests of memory."""

import math
from typing import Any

from hypothesis import strategies as st

from hiera_mcp.model.memory import RoundRecord
from hiera_mcp.model.space import Direction, Space

CPU_SPACES = (Space.CPP, Space.CPP_LIBRARIES, Space.CPP_LIBRARIES_PYTORCH)
GPU_SPACES = (Space.CUDA, Space.CUDA_LIBRARIES, Space.CUDA_LIBRARIES_PYTORCH)


def a_round(speedup: float | None = None, before: float | None = None, **facts: Any) -> RoundRecord:
    """A round on `cpu` with one candidate: its speed-up over eager PyTorch, or None when it failed."""
    return RoundRecord.model_validate(
        {
            "origin": "o_here",
            "run_id": "r_1",
            "round": 1 if before is None else 2,
            "task_id": "t_1",
            "operator_kind": "gemm",
            "bound": "memory",
            "device": "cpu",
            "space": "cpp",
            "direction": "parallelism",
            "room": math.log(8 / (before or 1)) if (before or 1) < 8 else 0.0,
            "candidates": 1,
            "failures": {} if speedup else {"wrong_output": 1},
            "best": interval(speedup),
            "before": interval(before),
        }
        | facts
    )


def rounds(count: int, speedup: float | None = None, before: float | None = None, **facts: Any) -> list[RoundRecord]:
    """So many rounds alike, each of another run."""
    return [a_round(speedup, before, **{"run_id": f"r_{facts.get('direction')}_{n}", **facts}) for n in range(count)]


def interval(speedup: float | None) -> dict[str, float] | None:
    return None if speedup is None else {"median": speedup, "low": 0.95 * speedup, "high": 1.05 * speedup}


@st.composite
def records(draw: st.DrawFn) -> RoundRecord:
    """Any record; few origins, runs and rounds, so that several are of the same round."""
    on_gpu = draw(st.booleans())
    speedup = draw(st.none() | st.floats(0.01, 50))
    before = draw(st.none() | st.floats(0.01, 50))
    failed = draw(st.integers(0 if speedup else 1, 3))
    return a_round(
        speedup,
        before,
        origin=draw(st.sampled_from(["o_1", "o_2"])),
        run_id=draw(st.sampled_from(["r_1", "r_2", "r_3"])),
        round=draw(st.integers(1, 3)),
        operator_kind=draw(st.sampled_from(["gemm", "conv", "elementwise"])),
        bound=draw(st.sampled_from(["memory", "compute", "latency", "launch"])),
        device=draw(st.sampled_from(["NVIDIA H200", "NVIDIA A100"])) if on_gpu else "cpu",
        space=draw(st.sampled_from(GPU_SPACES if on_gpu else CPU_SPACES)),
        direction=draw(st.none() | st.sampled_from(list(Direction))),
        candidates=failed + (draw(st.integers(1, 3)) if speedup else 0),
        failures={"wrong_output": failed} if failed else {},
    )
