"""Contracts to test with: one made by hand, and one per task text, built from a real trace."""

from pathlib import Path

import pytest

from hiera_mcp.model.contract import Contract

HERE = Path(__file__).parent


@pytest.fixture
def linear_relu() -> Contract:
    """relu(x @ weight.T + bias) on cpu, written by hand: 64 × 96 → 64 × 32, float32."""
    return Contract.model_validate_json((HERE / "linear_relu.json").read_text())
