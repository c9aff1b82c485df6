"""Launches and tasks by hand, and the reports that were recorded on an H200 (scripts/record_profiles.py)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.model.contract import Contract
from hiera_mcp.model.profile import Launch, Metric, Stall
from hiera_mcp.sandbox.profiling.facts import TaskFacts

QUIET: dict[str, float] = {
    "sm_pct": 30.0,
    "memory_pct": 30.0,
    "dram_pct": 20.0,
    "issue_active": 0.3,
    "occupancy_pct": 90.0,
    "waves": 8.0,
    "sm_cycles": 1000.0,
    "sm_cycles_most": 1010.0,
    "instructions": 1000.0,
    "branches": 10.0,
    "threads_per_instruction": 32.0,
    "global_sectors": 100.0,
    "global_sectors_ideal": 100.0,
    "tensor_pipe_pct": 0.0,
    "dram_read": 500.0,
    "dram_write": 500.0,
}
"""A launch of which nothing bad can be said, but that it waits."""


@pytest.fixture
def launch() -> Callable[..., Launch]:
    """launch(stalls={…}, share=1.0, seconds=1e-3, metric=value, …); a metric that is None is null."""

    def make(
        stalls: dict[str, float] | None = None, share: float = 1.0, seconds: float = 1e-3, **metrics: float | None
    ) -> Launch:
        values: dict[str, float | None] = {**QUIET, **metrics}
        return Launch(
            kernel="k(float*)",
            share=share,
            seconds=seconds,
            metrics=tuple(_metric(name, value) for name, value in values.items()),
            stalls=tuple(Stall(reason=r, cycles=10 * s, share=s) for r, s in (stalls or {}).items()),
        )

    return make


@pytest.fixture
def task() -> Callable[..., TaskFacts]:
    """task(field=value, …): a streaming task of 1,000 bytes, at twice its floor."""

    def make(**changes: Any) -> TaskFacts:
        fields: dict[str, Any] = {
            "floor_seconds": 5e-4,
            "floor_is_the_contracts": True,
            "seconds": 1e-3,
            "compulsory_bytes": 1000.0,
            "moved_bytes": 1000.0,
            "complete": True,
            "contraction_share": 0.0,
            "tensor_core_legal": False,
            "tensor_core_reason": "no contraction",
        }
        return TaskFacts(**{**fields, **changes})

    return make


def _metric(name: str, value: float | None) -> Metric:
    return Metric(name=name, value=value, unit="", origin="counter", reason="" if value is not None else "absent")


@pytest.fixture
def contract() -> Contract:
    """A streaming task of 4 GFLOP and 2 GB on an H200."""
    return Contract.model_validate_json((Path(__file__).parent / "streaming.json").read_text())
