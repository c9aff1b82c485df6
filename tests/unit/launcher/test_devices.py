"""Which target runs on which device."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.errors import RequestError
from hiera_mcp.sandbox import devices
from hiera_mcp.sandbox.devices import (
    GpuDevice,
    best_target,
    device_for,
    device_note,
    parse_cpu_name,
    parse_gpus,
    runs_on,
)

A100 = GpuDevice(0, "NVIDIA A100-SXM4-80GB", (8, 0), 81920, "580.65.06")
H200 = GpuDevice(1, "NVIDIA H200", (9, 0), 143771, "580.65.06")
B200 = GpuDevice(2, "NVIDIA B200", (10, 0), 183359, "580.65.06")


def test_gpus_without_nvidia_smi_are_known_by_the_drivers_own_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for number, text in enumerate(("Model: \t\t NVIDIA H200\nIRQ:   \t\t 41\n", "IRQ: 42\n")):
        (tmp_path / "gpus" / str(number)).mkdir(parents=True)
        (tmp_path / "gpus" / str(number) / "information").write_text(text)
    monkeypatch.setattr(devices, "gpus", lambda: ())
    assert devices.unlisted_gpus(tmp_path) == ("NVIDIA H200", "unknown model")
    assert devices.unlisted_gpus(tmp_path / "absent") == ()


def test_gpus_are_read_from_the_list_of_nvidia_smi():
    text = (
        "0, NVIDIA A100-SXM4-80GB, 8.0, 81920, 580.65.06, [N/A], [N/A]\n"
        "1, NVIDIA H200, 9.0, 143771, 580.65.06, [N/A], [N/A]\n"
    )
    assert parse_gpus(text) == (A100, H200)


def test_a_gpus_node_has_the_number_that_the_driver_gives_it(tmp_path: Path):
    information = tmp_path / "gpus" / "0000:b8:00.0" / "information"
    information.parent.mkdir(parents=True)
    information.write_text("Model: \t\t NVIDIA H200\nDevice Minor: \t 5\n")
    text = "1, NVIDIA H200, 9.0, 143771, 580.65.06, GPU-6f2c, 00000000:B8:00.0\n2, NVIDIA H200, 9.0, 143771, 580.65.06, GPU-77, 00000000:C8:00.0\n"
    first, second = parse_gpus(text, tmp_path)
    assert (first.device, first.uuid, first.node) == ("cuda:1", "GPU-6f2c", "/dev/nvidia5")
    assert (second.device, second.uuid, second.node) == ("cuda:2", "GPU-77", "/dev/nvidia2")


FIRST, SECOND = replace(A100, uuid="GPU-aa01"), replace(H200, uuid="GPU-bb02")


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (None, (FIRST, SECOND)),
        ("", ()),
        ("-1", ()),
        ("1", (SECOND,)),
        ("1,0", (FIRST, SECOND)),
        ("0,7,1", (FIRST,)),
        ("GPU-bb", (SECOND,)),
        (" GPU-aa01 , 1", (FIRST, SECOND)),
        ("GPU-", (FIRST,)),
        ("NoDevFiles", ()),
    ],
)
def test_cuda_visible_devices_chooses_the_gpus_and_leaves_their_names(
    names: str | None, left: tuple[GpuDevice, ...]
) -> None:
    assert devices.visible_gpus((FIRST, SECOND), names) == left


def test_an_integrated_gpu_without_a_memory_figure_is_listed():
    (gpu,) = parse_gpus("0, NVIDIA Thor, 11.0, [N/A], 580.00, GPU-1, 00000000:01:00.0\n")
    assert (gpu.target, gpu.memory_mib) == ("cuda:sm_110a", 0)


@given(st.text())
def test_text_that_is_no_list_gives_no_gpu_and_no_error(text: str):
    assert parse_gpus("No devices were found\n" + text.replace(",", ";")) == ()


@pytest.mark.parametrize(
    ("present", "target"),
    [((A100,), "cuda:sm_80"), ((H200,), "cuda:sm_90a"), ((B200,), "cuda:sm_100a"), ((), "cpu")],
)
def test_the_best_target_uses_all_instructions_of_the_gpu(present: tuple[GpuDevice, ...], target: str):
    assert best_target(present) == target


@pytest.mark.parametrize(
    ("target", "gpu", "runs"),
    [
        ("cuda:sm_80", A100, True),
        ("cuda:sm_80", H200, True),
        ("cuda:sm_86", A100, False),
        ("cuda:sm_90a", H200, True),
        ("cuda:sm_90a", B200, False),
        ("cuda:sm_90", B200, True),
        ("cuda:sm_100f", B200, True),
        ("cuda:sm_90a", A100, False),
    ],
)
def test_plain_targets_run_on_newer_gpus_and_specific_ones_only_on_their_own(target: str, gpu: GpuDevice, runs: bool):
    assert runs_on(target, gpu) is runs


def test_auto_takes_the_gpu_of_the_targets_own_architecture():
    assert device_for("cuda:sm_80", present=(H200, A100)) == "cuda:0"
    assert device_for("cuda:sm_80", present=(H200,)) == "cuda:1"


def test_a_target_without_a_device_has_none_and_cpu_always_has_one():
    assert device_for("cuda:sm_90a", present=()) is None
    assert device_for("cpu", present=()) == "cpu"


def test_a_device_that_cannot_run_the_target_is_refused_with_those_that_can():
    with pytest.raises(RequestError, match=r"cannot run on device `cpu`.*Valid: auto, cuda:1"):
        device_for("cuda:sm_90a", "cpu", (A100, H200))
    with pytest.raises(RequestError, match="Valid: auto, cpu"):
        device_for("cpu", "cuda:0", (A100,))


def test_code_for_an_older_gpu_says_so():
    assert "PTX" in device_note("cuda:sm_80", H200)
    assert device_note("cuda:sm_90a", H200) == ""


def test_the_processors_name_is_found():
    assert parse_cpu_name("processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9354\n") == "AMD EPYC 9354"
    assert parse_cpu_name("processor : 0\nCPU implementer : 0x41\n") == ""
