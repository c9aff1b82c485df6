"""Gates: what no score and no reason overrules."""

from collections.abc import Callable
from typing import Any

import pytest

from hiera_mcp.errors import GateError
from hiera_mcp.model.space import Direction
from hiera_mcp.planning.decide import decide, plan_direction, plan_space
from hiera_mcp.planning.evidence import Evidence
from hiera_mcp.planning.gates import direction_gates, space_gates

TC = Direction.TENSOR_CORE_INSTRUCTIONS


def test_tensor_cores_are_shut_where_precision_does_not_allow_them(evidence: Callable[..., Evidence]) -> None:
    (text,) = direction_gates(evidence(tensor_cores=False), TC)
    assert text == "tensor_core_legal: float32 without TF32"


@pytest.mark.parametrize("options", [{"tensor_cores": True}, {"target": "cpu", "tensor_cores": False}])
def test_tensor_cores_are_open_where_legal_and_the_direction_is_open_on_cpu(
    options: dict[str, Any], evidence: Callable[..., Evidence]
) -> None:
    assert direction_gates(evidence(**options), TC) == ()


def test_the_other_directions_have_no_gate(evidence: Callable[..., Evidence]) -> None:
    assert all(direction_gates(evidence(), d) == () for d in Direction if d is not TC)


@pytest.mark.parametrize("target", ["cuda:sm_80", "cpu"])
def test_only_the_library_space_is_shut_on_a_host_without_libraries(
    target: str, evidence: Callable[..., Evidence]
) -> None:
    e = evidence(target=target, libraries=[])
    assert [bool(space_gates(e, space)) for space in e.spaces] == [False, True, False]


def test_nobody_having_looked_for_libraries_shuts_nothing(evidence: Callable[..., Evidence]) -> None:
    e = evidence(libraries=None)
    assert all(space_gates(e, space) == () for space in e.spaces)


def test_a_gated_space_is_never_recommended(evidence: Callable[..., Evidence]) -> None:
    options = {"work": (("gemm", 1.0, 1),), "intensity": 600}
    assert plan_space(evidence(**options, libraries=["cublas"])).recommended == "cuda_libraries"
    assert plan_space(evidence(**options, libraries=[])).recommended == "cuda_libraries_pytorch"


def test_choosing_a_gated_option_names_the_gate_and_what_remains(evidence: Callable[..., Evidence]) -> None:
    with pytest.raises(GateError, match="tensor_core_legal: float32 without TF32") as caught:
        decide(plan_direction(evidence()), TC, reason="I insist")
    assert TC not in caught.value.valid and "parallelism" in caught.value.valid
