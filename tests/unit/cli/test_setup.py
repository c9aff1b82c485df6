"""scripts/setup.sh on machines that lack something, simulated by a PATH of their own. Nothing is installed."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BASICS = ("sh", "dirname", "id", "cut", "sort", "tr", "sed", "head", "cat")
NEEDED = ("g++", "bwrap", "objdump")

pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in BASICS + NEEDED), reason="g++, bubblewrap or binutils is missing"
)
Setup = Callable[..., subprocess.CompletedProcess[str]]


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    """Runs setup.sh with a python that only notes what it was asked for, and without the tools in `without`."""
    tools = tmp_path / "bin"
    tools.mkdir()
    venv_python = tmp_path / "venv" / "bin" / "python"
    venv_python.parent.mkdir(parents=True)
    script(venv_python, f'echo "$*" >>{tmp_path}/asked')

    def run(without: str = "", python: str = "exit 0", nvidia_smi: str = "") -> subprocess.CompletedProcess[str]:
        for name in {*BASICS, *NEEDED} - {without}:
            (tools / name).symlink_to(str(shutil.which(name)))
        script(tools / "python3", python)
        if nvidia_smi:
            script(tools / "nvidia-smi", f"echo '{nvidia_smi}'")
        env = {"PATH": str(tools), "VENV": str(tmp_path / "venv"), "HOME": os.environ.get("HOME", "/")}
        command = [str(shutil.which("sh")), str(ROOT / "scripts" / "setup.sh")]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)

    return run


def asked(tmp_path: Path) -> str:
    return (tmp_path / "asked").read_text()


@pytest.mark.parametrize(("tool", "package"), [("g++", "g++"), ("bwrap", "bubblewrap"), ("objdump", "binutils")])
def test_a_missing_tool_is_named_with_its_package(setup: Setup, tool: str, package: str) -> None:
    done = setup(without=tool)
    assert done.returncode == 2
    assert f"sudo apt-get install {package}" in done.stderr


def test_an_old_python_is_refused_with_its_version(setup: Setup) -> None:
    python = 'case "$*" in *version_info*) exit 1 ;; *--version*) echo Python 3.10.1 ;; esac'
    done = setup(python=python)
    assert done.returncode == 2
    assert "Python 3.10.1; Python 3.11 or later is needed" in done.stderr


def test_without_a_gpu_the_small_torch_is_installed(setup: Setup, tmp_path: Path) -> None:
    assert setup().returncode == 0
    assert asked(tmp_path).split()[-4:] == ["-c", "constraints.txt", "-e", ".[dev]"]


@pytest.mark.parametrize(
    ("version", "extra"), [("12.8", ".[dev,cuda12]"), ("13.0", ".[dev,cuda13]"), ("14.1", ".[dev,cuda13]")]
)
def test_with_a_gpu_cupy_for_its_cuda_version_is_installed(
    setup: Setup, tmp_path: Path, version: str, extra: str
) -> None:
    done = setup(nvidia_smi=f"| NVIDIA-SMI 580.1  Driver Version: 580.1  CUDA Version: {version} |")
    assert done.returncode == 0
    assert asked(tmp_path).split()[-2:] == ["-e", extra]
    assert "constraints.txt" not in asked(tmp_path)


def test_a_driver_too_old_for_any_cupy_counts_as_none(setup: Setup, tmp_path: Path) -> None:
    assert setup(nvidia_smi="CUDA Version: 11.4").returncode == 0
    assert "constraints.txt" in asked(tmp_path)
