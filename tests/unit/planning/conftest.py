"""Builders of contracts, outcomes and evidence, as fixtures."""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import pytest
from planning_values import make_contract, make_dataflow, make_outcome, make_timing

from hiera_mcp.model.contract import Contract
from hiera_mcp.model.evaluation import Timing
from hiera_mcp.planning.evidence import Evidence, Outcome, gather


@pytest.fixture
def contract() -> Callable[..., Contract]:
    return make_contract


@pytest.fixture
def dataflow() -> Callable[..., dict[str, Any]]:
    return make_dataflow


@pytest.fixture
def timing() -> Callable[..., Timing]:
    return make_timing


@pytest.fixture
def outcome() -> Callable[..., Outcome]:
    return make_outcome


@pytest.fixture
def evidence() -> Callable[..., Evidence]:
    """Evidence for a workload: keyword arguments of `make_contract` and of `gather`."""

    def build(outcomes: Sequence[Outcome] = (), **options: Any) -> Evidence:
        of_contract = {k: options.pop(k) for k in list(options) if k in signature(make_contract).parameters}
        return gather(make_contract(**of_contract), outcomes, **options)

    return build
