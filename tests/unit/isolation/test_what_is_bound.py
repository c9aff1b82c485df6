"""Interpreter, child programs, compilers and drivers, wherever this host keeps them."""

import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.sandbox.devices import GpuDevice
from hiera_mcp.sandbox.isolation import binds
from hiera_mcp.sandbox.isolation.box import Bind, BoxLimits, BoxSpec
from hiera_mcp.sandbox.isolation.bubblewrap import environment_arguments, mount_arguments
from hiera_mcp.sandbox.isolation.identity import can_reach, can_read
from hiera_mcp.sandbox.isolation.process import run


@pytest.fixture
def fresh_caches():
    for cached in (binds.python_binds, binds.toolkit_binds, binds.driver_folders):
        cached.cache_clear()
    yield
    for cached in (binds.python_binds, binds.toolkit_binds, binds.driver_folders):
        cached.cache_clear()


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_link_chain_ends_at_the_real_file(tmp_path: Any):
    real = executable(tmp_path / "real" / "tool")
    (tmp_path / "middle").symlink_to("real/tool")
    (tmp_path / "first").symlink_to(tmp_path / "middle")
    assert list(binds.link_chain(tmp_path / "first")) == [tmp_path / "first", tmp_path / "middle", real]


def test_a_link_that_points_at_itself_ends_too(tmp_path: Any):
    (tmp_path / "loop").symlink_to("loop")
    assert len(list(binds.link_chain(tmp_path / "loop"))) < 100


def test_a_toolkit_outside_usr_is_bound_as_a_whole(tmp_path: Any, monkeypatch: Any, fresh_caches: Any):
    executable(tmp_path / "cuda" / "bin" / "nvcc")
    (tmp_path / "cuda" / "nvvm").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/cuda/bin:{os.environ['PATH']}")
    assert tmp_path / "cuda" in [bind.host for bind in binds.toolkit_binds()]


def test_a_wrapper_script_binds_the_toolkit_it_calls_and_not_the_home_it_lies_in(
    tmp_path: Any, monkeypatch: Any, fresh_caches: Any
):
    toolkit = tmp_path / "toolkit"
    (toolkit / "nvvm").mkdir(parents=True)
    wrapper = executable(tmp_path / "home" / "bin" / "nvcc", f"#!/bin/sh\necho '#$ TOP={toolkit}' >&2\n")
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    hosts = [bind.host for bind in binds.toolkit_binds()]
    assert toolkit in hosts and wrapper in hosts
    assert tmp_path / "home" not in hosts


def test_nothing_below_usr_is_bound_twice():
    for bind in (*binds.python_binds(), *binds.toolkit_binds()):
        assert not bind.inside.startswith("/usr")


def test_a_driver_that_only_the_library_path_names_is_found(tmp_path: Any, monkeypatch: Any, fresh_caches: Any):
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver" / "libcuda.so.1").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path}/driver:/nonexistent")
    assert str(tmp_path / "driver") in binds.driver_folders()
    spec = BoxSpec(
        ("true",), tmp_path, BoxLimits(1 << 30), gpu=GpuDevice(0, "NVIDIA H200", (9, 0), 143771, "580.65.06")
    )
    assert str(tmp_path / "driver") in mount_arguments(spec)
    assert f"LD_LIBRARY_PATH {tmp_path}/driver" in " ".join(environment_arguments(spec))


def test_gpu_nodes_come_after_dev_and_before_it_is_closed(tmp_path: Any):
    words = mount_arguments(
        BoxSpec(
            ("true",),
            tmp_path,
            BoxLimits(1 << 30),
            gpu=GpuDevice(1, "NVIDIA H200", (9, 0), 143771, "580.65.06", minor=3),
        )
    )
    joined = " ".join(words)
    assert joined.index("--dev /dev") < joined.index("--dev-bind-try /dev/nvidia3") < joined.index("--remount-ro /dev")
    assert "/dev/nvidia0" not in words


def test_a_box_without_a_gpu_has_no_gpu_node(tmp_path: Any):
    assert not any("nvidia" in word for word in mount_arguments(BoxSpec(("true",), tmp_path, BoxLimits(1 << 30))))


@pytest.mark.parametrize(("mode", "expected"), [(0o755, True), (0o711, True), (0o750, False), (0o700, False)])
def test_reach_is_a_matter_of_the_folders_above(work: Any, mode: Any, expected: Any):
    work.chmod(0o755)
    (work / "folder").mkdir()
    (work / "folder" / "file").touch()
    (work / "folder").chmod(mode)
    assert can_reach(work / "folder" / "file", 64000) is expected


def test_a_link_is_reached_only_if_its_target_is(work: Any):
    work.chmod(0o755)
    (work / "hidden").mkdir(mode=0o700)
    (work / "hidden" / "file").touch()
    (work / "link").symlink_to(work / "hidden" / "file")
    assert not can_reach(work / "link", 64000)
    assert not can_read(work / "link", 64000)
    assert stat.S_IMODE((work / "hidden").stat().st_mode) == 0o700


async def test_the_interpreter_and_the_child_programs_run_in_a_box(boxed: Any):
    code = "import hiera_mcp.sandbox.child.wire as w, sys; print(w.__file__); print(sys.prefix)"
    visible = (*binds.python_binds(), *binds.child_binds())
    argv = (sys.executable, "-P", "-c", code)
    spec = boxed.spec(*argv, binds=visible, env=binds.child_env())
    outcome = await run(boxed.backend, spec, 30)
    assert outcome.output.splitlines() == ["/opt/hiera/hiera_mcp/sandbox/child/wire.py", sys.prefix]


@pytest.mark.parametrize("above", ["/tmp", "/dev/shm", "/run", "/var/tmp", "/opt"])
async def test_what_is_bound_is_visible_wherever_it_lies_and_cannot_be_changed(boxed: Any, above: Any):
    if not os.access(above, os.W_OK):
        pytest.skip(f"{above} cannot be written here")
    with tempfile.TemporaryDirectory(prefix="hiera-test-", dir=above) as name:
        folder = Path(name)
        (folder / "venv").mkdir()
        (folder / "venv" / "file").write_text("seen")
        bound = (Bind(folder / "venv", str(folder / "venv")),)
        script = f"cat {folder}/venv/file; echo x > {folder}/venv/other; ls {above}; echo y > /tmp/own && cat /tmp/own"
        outcome = await boxed.shell(script, binds=bound)
    assert outcome.output.startswith("seen") and outcome.output.endswith("y\n"), outcome.output
    assert f"cannot create {folder}/venv/other" in outcome.output


async def test_nothing_of_ours_but_the_child_programs_is_visible(boxed: Any):
    code = "import hiera_mcp.settings"
    spec = boxed.spec(sys.executable, "-P", "-S", "-c", code, env=binds.child_env())
    spec = boxed.spec(*spec.argv, binds=(*binds.python_binds(), *binds.child_binds()), env=spec.env)
    outcome = await run(boxed.backend, spec, 30)
    assert "No module named 'hiera_mcp.settings'" in outcome.output


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
async def test_a_shared_library_is_compiled_in_a_box(boxed: Any):
    (boxed.work / "a.cpp").write_text('#include <vector>\nextern "C" int f() { return std::vector<int>(3).size(); }\n')
    argv = ("g++", "-O1", "-shared", "-fPIC", "-o", "a.so", "a.cpp")
    outcome = await run(boxed.backend, boxed.spec(*argv, binds=binds.toolkit_binds()), 60)
    assert outcome.ended == "exit" and outcome.code == 0, outcome.output
    assert (boxed.work / "a.so").stat().st_size > 0


@pytest.mark.skipif(binds.find_tool("nvcc") is None, reason="nvcc is not installed")
async def test_a_kernel_is_compiled_in_a_box(boxed: Any):
    nvcc = binds.find_tool("nvcc")
    (boxed.work / "a.cu").write_text("__global__ void f(float* x) { x[threadIdx.x] += 1; }\n")
    limits = BoxLimits(memory_bytes=8 << 30, memory_kind="address_space")
    spec = boxed.spec(str(nvcc), "-cubin", "-arch=sm_80", "a.cu", limits=limits, binds=binds.toolkit_binds())
    outcome = await run(boxed.backend, spec, 60)
    assert outcome.ended == "exit" and outcome.code == 0, outcome.output


async def test_the_compiler_cannot_be_made_to_read_the_host(boxed: Any):
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    (boxed.work / "a.cpp").write_text('#include "/etc/shadow"\n#include "/etc/passwd"\n')
    outcome = await run(boxed.backend, boxed.spec("g++", "-c", "a.cpp"), 30)
    assert outcome.code == 1
    assert "root:" not in outcome.output


async def test_a_strict_umask_of_the_server_does_not_shut_the_box_out(boxed: Any):
    before = os.umask(0o077)
    try:
        hidden = boxed.work / "private" / "box"
        hidden.mkdir(parents=True)
        outcome = await run(boxed.backend, boxed.python("print('runs')", work=hidden), 20)
    finally:
        os.umask(before)
    assert outcome.output == "runs\n"
