"""Profiles without hardware counters: what is derived, what is static, and what is missing and why."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hiera_mcp.model.evaluation import Device, KernelResources
from hiera_mcp.model.profile import Metric, Profile
from hiera_mcp.model.work import ProfileRequest
from hiera_mcp.sandbox.compilers.build import Built
from hiera_mcp.sandbox.evidence import notes, profile

Requests = Callable[..., ProfileRequest]
Builds = Callable[..., Built]

SPILLING = KernelResources(
    kernel="k(float*)", registers=255, shared_bytes=1024, spill_store_bytes=8, spill_load_bytes=16, stack_bytes=24
)


def _metrics(found: Profile) -> dict[str, Metric]:
    return {m.name: m for m in found.metrics}


@pytest.mark.parametrize(
    ("seconds", "memory", "math", "expected"),
    [
        (1.2e-3, 1e-3, 1e-4, "memory"),
        (1.2e-3, 1e-4, 1e-3, "compute"),
        (1e-2, 1e-3, 1e-4, "latency"),
        (3e-6, 1e-7, 1e-8, "launch"),
        (None, 1e-3, 1e-4, "unknown"),
    ],
)
def test_the_bottleneck_follows_from_time_and_floor(
    make_request: Requests,
    make_built: Builds,
    device: Device,
    seconds: float,
    memory: float,
    math: float,
    expected: str,
) -> None:
    found = profile(make_request(seconds, memory=memory, math=math), make_built(), device)
    assert found.bottleneck == expected


def test_rates_are_work_over_time(make_request: Requests, make_built: Builds, device: Device) -> None:
    found = profile(make_request(2e-3), make_built(), device)
    metrics = _metrics(found)
    assert found.floor_ratio == pytest.approx(2)
    assert metrics["achieved_bandwidth"].value == pytest.approx(1e12)
    assert metrics["achieved_flops"].value == pytest.approx(2e12)
    assert metrics["bandwidth_share"].value == pytest.approx(0.5)
    assert "2 ms" in found.summary and "50 %" in found.summary


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(st.none(), st.floats(1e-9, 10)),
    st.booleans(),
    st.dictionaries(st.sampled_from(["load", "fma"]), st.integers(0, 9)),
)
def test_a_metric_is_null_exactly_when_it_says_why(
    make_request: Requests, make_built: Builds, device: Device, seconds: float | None, cpu: bool, mix: dict[str, int]
) -> None:
    request = make_request(seconds, target="cpu" if cpu else "cuda:sm_90a")
    found = profile(request, make_built((SPILLING,) if not cpu else (), mix), device)
    assert all((m.value is None) == bool(m.reason) for m in found.metrics)
    assert found.summary and found.counters


def test_spills_and_narrow_loads_and_idle_tensor_cores_are_named(
    make_request: Requests, make_built: Builds, device: Device
) -> None:
    found = profile(make_request(1e-2), make_built((SPILLING,), {"load": 10, "fma": 10}), device)
    assert "k(float*) spills 24 bytes" in found.summary
    assert "No load is wide" in found.summary and "Tensor Cores" in found.summary
    metrics = _metrics(found)
    assert (metrics["registers_max"].value, metrics["spill_bytes"].value) == (255, 24)
    assert metrics["wide_load_share"].value == 0


def test_occupancy_is_told_for_gpus_only(make_request: Requests, make_built: Builds, device: Device) -> None:
    on_gpu = profile(make_request(1e-3), make_built((SPILLING,)), device)
    assert {o.block_threads: o.percent for o in on_gpu.occupancy} == {128: 12.5, 256: 12.5, 512: 0.0, 1024: 0.0}
    assert profile(make_request(1e-3, target="cpu"), make_built(), device).occupancy == ()


def test_a_missing_disassembler_is_a_reason_not_a_zero(
    make_request: Requests, make_built: Builds, device: Device
) -> None:
    metrics = _metrics(profile(make_request(1e-3), make_built(), device))
    assert metrics["tensor_share"].value is None and "cuobjdump" in metrics["tensor_share"].reason


def test_a_check_tells_occupancy_and_what_the_binary_alone_advises(make_request: Requests, make_built: Builds) -> None:
    said = notes(make_request().contract, make_built((SPILLING,), {"load": 10, "fma": 10}))
    assert "12.5 % at 128 (registers)" in said[0] and "k(float*)" in said[0]
    assert "spills 24 bytes" in said[1] and "No load is wide" in said[2]
    assert notes(make_request(target="cpu").contract, make_built((), {"wide_load": 3})) == ()
