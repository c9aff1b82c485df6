"""Hardware tables: the facts add up, and every name a driver reports is found."""

import pytest

from hiera_mcp.errors import RequestError
from hiera_mcp.knowledge_base.hardware import gpu_for, gpus, named, parse_hardware, peaks, rows
from hiera_mcp.model.hardware import Gpu


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("NVIDIA A100-PCIE-40GB", "a100-40gb"),
        ("NVIDIA A100-SXM4-40GB", "a100-40gb"),
        ("NVIDIA A100 80GB PCIe", "a100-80gb-pcie"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H200", "h200"),
        ("nvidia h200", "h200"),
        ("h100-sxm", "h100-sxm"),
        ("NVIDIA B200", "b200"),
    ],
)
def test_a_gpu_is_found_by_the_name_its_driver_reports(name: str, slug: str) -> None:
    assert named(name).slug == slug


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("cuda:sm_80", "NVIDIA A100-PCIE-40GB"),
        ("cuda:sm_90", "NVIDIA H100 80GB HBM3"),
        ("cuda:sm_90a", "NVIDIA H100 80GB HBM3"),
        ("cuda:sm_100a", "NVIDIA B200"),
    ],
)
def test_each_target_has_one_default(target: str, name: str) -> None:
    assert gpu_for(target).name == name
    assert sum(target in row.default_for for row in rows()) == 1


def test_older_code_may_run_on_a_newer_device() -> None:
    assert gpu_for("cuda:sm_80", "NVIDIA H200").target == "cuda:sm_90a"


def test_unknown_names_and_targets_are_refused_with_the_valid_ones() -> None:
    with pytest.raises(RequestError) as caught:
        gpu_for("cuda:sm_80", "Voodoo 2")
    assert set(caught.value.valid) == {gpu.name for gpu in gpus()}
    for target in ("cpu", "cuda:sm_75"):
        with pytest.raises(RequestError) as caught:
            gpu_for(target)
        assert "cuda:sm_80" in caught.value.valid


@pytest.mark.parametrize("gpu", gpus(), ids=lambda g: g.name)
def test_the_facts_of_a_gpu_add_up(gpu: Gpu) -> None:
    rate = gpu.peak_flops
    assert rate["fp64"] <= rate["fp32"] < rate["tf32_tensor"] < rate["bf16_tensor"] == rate["fp16_tensor"]
    assert gpu.shared_bytes_per_block == gpu.shared_bytes_per_sm - 1024  # one KB per block is the system's
    assert 1e12 < gpu.bandwidth < 1e13 and 1e10 < gpu.memory_bytes < 1e12
    assert ("wgmma" in gpu.features) is (gpu.target == "cuda:sm_90a")


def test_fp32_rates_follow_from_units_and_clocks() -> None:
    """64 FMA per clock and multiprocessor on sm_80, 128 on sm_90."""
    assert gpu_for("cuda:sm_80").peak_flops["fp32"] == pytest.approx(2 * 64 * 108 * 1.41e9, rel=0.01)
    assert named("h200").gpu.peak_flops["fp32"] == pytest.approx(2 * 128 * 132 * 1.98e9, rel=0.01)


def test_peaks_say_that_they_are_nominal() -> None:
    found = peaks(named("h200").gpu)
    assert found.bandwidth == 4.8e12 and found.flops["fp32"] == 67e12
    assert "nominal" in found.basis and "H200" in found.basis


@pytest.mark.parametrize("text", ["name = ", 'name = "x"', 'aliases = []\ndefault_for = []\nnotes = ""\nname = "x"'])
def test_a_broken_table_is_refused_with_its_name(text: str) -> None:
    with pytest.raises(RequestError, match="mine is not a hardware table"):
        parse_hardware("mine", text)
