"""The doctor says what works, what does not, and what to install."""

from pathlib import Path

import pytest

from hiera_mcp.sandbox.devices import GpuDevice
from hiera_mcp.sandbox.doctor import DISTRIBUTIONS, assemble, library_version, parse_version, tool_version
from hiera_mcp.sandbox.local import LocalExecutor

H200 = GpuDevice(0, "NVIDIA H200", (9, 0), 143771, "580.65.06")
ALL = {"g++": "12.2.0", "nvcc": "13.0.88", "bwrap": "0.8.0", "ncu": "2025.3", "cuobjdump": "13.0", "torch": "2.13.0"}
TOOLS = {**ALL, "compute-sanitizer": "2025.3", "cupy": "14.0"}
ARCHITECTURES = ("sm_80", "sm_90", "sm_90a")


def test_a_complete_host_runs_all_targets_of_its_gpu_and_needs_no_advice():
    report = assemble((), "bubblewrap", (H200,), TOOLS, ARCHITECTURES)
    assert {t.target: (t.compiles, t.runs, t.reason) for t in report.targets} == dict.fromkeys(
        ("cpu", "cuda:sm_80", "cuda:sm_90a"), (True, True, "")
    )
    assert report.advice == ()
    assert report.gpus == ("cuda:0: NVIDIA H200, compute capability 9.0, 143771 MiB, driver 580.65.06",)


def test_a_missing_compiler_says_what_to_install():
    tools = {**TOOLS, "g++": "missing: install it, for example `apt install g++`"}
    report = assemble((), "bubblewrap", (), tools, ARCHITECTURES)
    cpu = next(t for t in report.targets if t.target == "cpu")
    assert not cpu.compiles and not cpu.runs and "apt install g++" in cpu.reason
    assert any("apt install g++" in line for line in report.advice)


def test_without_torch_candidates_are_compiled_and_no_target_runs():
    tools = {**TOOLS, "torch": DISTRIBUTIONS["torch"][1]}
    report = assemble((), "bubblewrap", (H200,), tools, ARCHITECTURES)
    assert {(t.compiles, t.runs) for t in report.targets} == {(True, False)}
    assert all("install torch" in t.reason for t in report.targets)
    assert any("install torch" in line for line in report.advice)


def test_without_a_gpu_cuda_candidates_are_compiled_and_not_run():
    report = assemble((), "bubblewrap", (), TOOLS, ARCHITECTURES)
    cuda = next(t for t in report.targets if t.target == "cuda:sm_90a")
    assert cuda.compiles and not cuda.runs and "no GPU" in cuda.reason


def test_a_gpu_that_nvidia_smi_does_not_list_is_named_and_what_to_do():
    report = assemble((), "bubblewrap", (), TOOLS, ARCHITECTURES, ("NVIDIA H200",))
    assert any("NVIDIA H200: not used" in line and "nvidia-smi" in line for line in report.advice)
    assert not any("No GPU is visible" in line for line in report.advice)


def test_an_nvcc_that_is_too_old_for_a_gpu_says_what_it_knows():
    b200 = GpuDevice(0, "NVIDIA B200", (10, 0), 183359, "580.65.06")
    report = assemble((), "bubblewrap", (b200,), TOOLS, ARCHITECTURES)
    own = next(t for t in report.targets if t.target == "cuda:sm_100a")
    assert not own.compiles and "sm_80, sm_90, sm_90a" in own.reason


def test_without_isolation_nothing_runs_and_the_first_advice_says_so():
    report = assemble((), None, (), TOOLS, ARCHITECTURES)
    assert not any(t.runs or t.compiles for t in report.targets)
    assert "untrusted" in report.advice[0]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("g++ (Debian 12.2.0-14+deb12u1) 12.2.0", "12.2.0"),
        ("Cuda compilation tools, release 13.0, V13.0.88", "13.0.88"),
        ("bubblewrap 0.8.0", "0.8.0"),
        ("no version at all", ""),
    ],
)
def test_versions_are_read_from_what_programs_print(text: str, version: str):
    assert parse_version(text) == version


async def test_a_tool_that_is_installed_answers_with_its_version_and_path():
    assert (await tool_version("g++")).endswith("g++)") or (await tool_version("g++")).startswith("missing")


def test_torch_is_found_without_importing_it():
    assert library_version("torch")[0].isdigit()


@pytest.mark.parametrize(
    ("bwrap", "why"),
    [
        (b"\x7fELF of another machine", "Exec format error"),
        (b"#!/no/such/interpreter\n", "No such file"),
        (b"#!/bin/sh\nexit 1\n", "could not be set up"),
    ],
)
async def test_a_bwrap_that_cannot_be_used_is_reported_as_such_and_the_doctor_answers(
    bwrap: bytes, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "bwrap").write_bytes(bwrap)
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    executor = LocalExecutor(cache_dir=tmp_path / "cache")
    try:
        report = await executor.doctor()
    finally:
        await executor.close()
    found = {i.backend: i for i in report.isolation}
    if report.chosen is None:
        assert not found["bubblewrap"].usable and why in found["bubblewrap"].reason
        assert not any(t.runs for t in report.targets) and "untrusted" in report.advice[0]
    else:
        assert report.chosen == "landlock"


async def test_a_cache_folder_that_cannot_be_made_does_not_silence_the_doctor(tmp_path: Path):
    (tmp_path / "file").touch()
    executor = LocalExecutor(cache_dir=tmp_path / "file" / "cache")
    try:
        assert (await executor.doctor()).tools
    finally:
        await executor.close()


async def test_a_program_that_cannot_be_executed_counts_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "g++").write_bytes(b"\x7fELF of another machine")
    (tmp_path / "g++").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert (await tool_version("g++")).startswith(f"missing: {tmp_path}/g++ cannot be executed (Exec format error): ")
