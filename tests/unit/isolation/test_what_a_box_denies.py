"""Real attempts from inside, under every identity that a box may have."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hiera_mcp
from hiera_mcp.model.work import IsolationReport
from hiera_mcp.sandbox.child import landlock
from hiera_mcp.sandbox.devices import GpuDevice, gpus
from hiera_mcp.sandbox.isolation import binds, bubblewrap, identity, probe
from hiera_mcp.sandbox.isolation.binds import python_binds
from hiera_mcp.sandbox.isolation.box import Bind
from hiera_mcp.sandbox.isolation.bubblewrap import Bubblewrap
from hiera_mcp.sandbox.isolation.landlock import Landlock
from hiera_mcp.sandbox.isolation.unsafe import Unsafe

MUST_WORK = ("write_work", "start_process", "socketpair")
FILES = (
    "read_secret",
    "list_outside",
    "write_outside",
    "write_shared_memory",
    "write_usr",
    "change_mode",
    "watch_files",
)
PROCESSES = ("read_environment", "signal_process", "trace_process", "outlasting_memory")
SOCKETS = ("tcp", "udp", "netlink", "abstract_socket", "path_socket")
KERNEL = ("user_namespace", "mount", "gpu", "be_root", "kernel_settings")
NAMES = (*MUST_WORK, *FILES, *PROCESSES, *SOCKETS, *KERNEL)
GPU = (*gpus(), GpuDevice(0, "absent", (9, 0), 0, ""))[0]
needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="changing the user needs root")
needs_landlock = pytest.mark.skipif(landlock.abi() < landlock.NEEDED_ABI, reason="this kernel's Landlock is too old")


def plain_python() -> str:
    """An interpreter that every user can start, with the same site-packages as this one."""
    for path in (sys.executable, f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"):
        if Path(path).exists() and identity.can_read(Path(path), identity.NOBODY):
            return path
    pytest.skip("no interpreter of this version that every user can start")


def reports_of(*prefix: str, cwd: str = "/") -> dict[str, IsolationReport]:
    """Every backend's self-check, as a process with `prefix` in front sees it."""
    packages = [path for path in sys.path if Path(path).is_dir()]
    root = str(Path(hiera_mcp.__file__).parent.parent)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": ":".join([root, *packages]), "TMPDIR": "/tmp"}
    command = [*prefix, plain_python(), "-P", "-m", "hiera_mcp.sandbox.isolation.probe"]
    ran = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=True, timeout=60)
    parsed = [IsolationReport.model_validate_json(line) for line in ran.stdout.splitlines()]
    return {report.backend: report for report in parsed}


@pytest.fixture(scope="module")
def as_started() -> IsolationReport:
    return asyncio.run(probe.self_check(Bubblewrap()))


@pytest.fixture(scope="module")
def as_nobody() -> dict[str, IsolationReport]:
    return reports_of("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")


@pytest.fixture(scope="module")
def as_root_with_plain_python() -> dict[str, IsolationReport]:
    return reports_of()


def seen(report: IsolationReport, name: str) -> tuple[bool, str]:
    found = {one.name: one for one in report.probes}
    assert name in found, report.reason
    return found[name].ok, found[name].observed


@needs_bwrap
@pytest.mark.parametrize("name", NAMES)
def test_bubblewrap_denies_and_allows_as_it_must(as_started: Any, name: Any):
    assert seen(as_started, name)[0]


@needs_bwrap
@needs_root
@pytest.mark.parametrize("name", NAMES)
def test_bubblewrap_of_an_ordinary_user_denies_and_allows_as_it_must(as_nobody: Any, name: Any):
    assert seen(as_nobody["bubblewrap"], name)[0]


@needs_landlock
@needs_root
@pytest.mark.parametrize("name", NAMES)
def test_landlock_of_an_ordinary_user_denies_and_allows_as_it_must(as_nobody: Any, name: Any):
    assert seen(as_nobody["landlock"], name)[0]


@needs_landlock
@needs_root
@pytest.mark.parametrize("name", NAMES)
def test_landlock_under_a_server_of_root_denies_and_allows_as_it_must(as_root_with_plain_python: Any, name: Any):
    assert seen(as_root_with_plain_python["landlock"], name)[0]


@needs_landlock
@needs_root
async def test_landlock_is_refused_where_only_root_can_reach_what_a_box_needs(work: Path, monkeypatch: Any):
    """Its box would have to stay root."""
    hidden = work / "hidden"
    (hidden / "inside").mkdir(parents=True)
    hidden.chmod(0o700)
    monkeypatch.setattr(binds, "python_binds", lambda: (*python_binds(), Bind(hidden / "inside", "/opt/inside")))
    report = await probe.self_check(Landlock())
    assert not report.usable
    assert "be_root allowed" in report.reason and str(hidden / "inside") in report.reason


@needs_bwrap
@needs_root
async def test_bubblewrap_that_has_to_stay_root_denies_as_it_must(monkeypatch: Any):
    monkeypatch.setattr(bubblewrap, "can_stage", lambda: False)
    report = await probe.self_check(Bubblewrap())
    assert report.usable, report.reason


@needs_bwrap
@needs_root
async def test_a_gpu_box_is_never_root(monkeypatch: Any, boxed: Any):
    """It has a writable /proc, where host uid 0 may change the kernel's settings whatever its capabilities are."""
    monkeypatch.setattr(bubblewrap, "can_stage", lambda: False)
    hidden = boxed.work / "private"
    (hidden / "box").mkdir(parents=True)
    hidden.chmod(0o700)
    with pytest.raises(probe.NoIsolationError, match="cannot run as root"):
        await boxed.shell("true", gpu=GPU, work=hidden / "box")


@needs_bwrap
async def test_a_box_with_a_gpu_denies_all_else_as_it_must():
    report = await probe.self_check(Bubblewrap(), gpu=GPU)
    there = Path("/dev/nvidiactl").exists()
    assert {one.name for one in report.probes if not one.ok} == (set() if there else {"gpu"})
    assert report.backend == f"bubblewrap, GPU {GPU.index}"


@needs_bwrap
async def test_a_gpu_box_cannot_change_the_kernel_settings(boxed: Any):
    outcome = await boxed.shell("echo x > /proc/sys/kernel/hostname && echo WROTE; id -u", gpu=GPU)
    assert "WROTE" not in outcome.output and outcome.ended == "exit"


async def test_the_probes_see_that_no_isolation_denies_nothing():
    report = await probe.self_check(Unsafe())
    assert not report.usable
    free = {*FILES, *PROCESSES, *SOCKETS} - {"write_usr"}
    for name in free:
        assert seen(report, name) == (False, "allowed")


async def test_the_first_backend_that_passes_is_chosen(monkeypatch: Any):
    passing, never = Bubblewrap(), Bubblewrap()
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    monkeypatch.setattr(probe, "BACKENDS", (Unsafe(), passing, never))
    assert await probe.choose() is passing


async def test_without_any_backend_the_refusal_says_what_to_install(monkeypatch: Any, tmp_path: Any):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(probe, "BACKENDS", (Bubblewrap(),))
    with pytest.raises(probe.NoIsolationError) as caught:
        await probe.choose()
    assert "bwrap" in caught.value.what and "not installed" in caught.value.what
    assert "apt-get install bubblewrap" in str(caught.value)


async def test_going_without_isolation_happens_on_request_only():
    assert (await probe.choose(unsafe=True)).name == "unsafe"


@needs_bwrap
@needs_landlock
@needs_root
def test_where_namespaces_are_forbidden_landlock_is_left(tmp_path: Any):
    """As in a default container: unshare, mount and clone(NEW*) fail."""
    root = str(Path(hiera_mcp.__file__).parent.parent)
    code = (
        f"import sys, os; sys.path.insert(0, {root!r})\n"
        "from hiera_mcp.sandbox.child import seccomp\n"
        "seccomp.install(seccomp.program(profiler=True))\n"
        "os.execvp(sys.argv[1], sys.argv[1:])"
    )
    reports = reports_of(plain_python(), "-c", code)
    assert not reports["bubblewrap"].usable
    assert "namespace" in reports["bubblewrap"].reason
    assert reports["landlock"].usable, reports["landlock"].reason


@needs_bwrap
async def test_only_what_is_bound_is_visible(boxed: Any):
    outcome = await boxed.shell("ls -A / /etc /opt /home /root 2>/dev/null")
    names = set(outcome.output.split())
    assert names.isdisjoint({"home", "root", "var", "srv", "passwd", "shadow", "hostname"})


@needs_bwrap
async def test_the_environment_is_what_the_box_was_given(boxed: Any, monkeypatch: Any):
    monkeypatch.setenv("HIERA_HTTP_TOKEN", "secret")
    outcome = await boxed.shell("env")
    names = {line.partition("=")[0] for line in outcome.output.splitlines()}
    assert names == {"PATH", "HOME", "TMPDIR", "LC_ALL", "USER", "HIERA_BOX", "HIERA_TEST_TAG", "PWD"}


@needs_bwrap
async def test_no_descriptor_leaks_but_those_that_were_asked_for(boxed: Any):
    wanted, other = os.memfd_create("wanted"), os.memfd_create("other")
    os.set_inheritable(other, True)
    outcome = await boxed.shell("ls /proc/$$/fd", fds=(wanted,))
    os.close(wanted)
    os.close(other)
    assert set(map(int, outcome.output.split())) == {0, 1, 2, wanted}


@needs_bwrap
async def test_a_box_cannot_claim_how_it_ended(boxed: Any):
    """The status pipe must not be inherited: whoever holds it could write an exit status of its choice."""
    code = (
        "import os\n"
        "for fd in range(3, 256):\n"
        "    try: os.write(fd, b'{\"exit-code\": 0}')\n"
        "    except OSError: pass\n"
        "os._exit(9)"
    )
    outcome = await probe.run(boxed.backend, boxed.python(code), 20)
    assert (outcome.ended, outcome.code) == ("exit", 9)


@needs_bwrap
async def test_a_read_only_box_cannot_write_its_folder(boxed: Any):
    outcome = await boxed.shell("echo x > /box/file", writable=False)
    assert outcome.code != 0
    assert list(boxed.work.iterdir()) == []


@needs_bwrap
async def test_mounts_cannot_be_changed(boxed: Any):
    script = "mount -o remount,rw,bind /usr; mount -t tmpfs none /box; umount /proc; echo x > /proc/self/oom_score_adj"
    outcome = await boxed.shell(f"{script}; touch /usr/x && echo WROTE; grep -c . /proc/self/mounts")
    assert "WROTE" not in outcome.output


@needs_bwrap
async def test_private_memory_folders_are_sized(boxed: Any):
    outcome = await boxed.shell("df -B1 --output=size /tmp /dev/shm | tail -n 2")
    assert all(int(size) <= 256 << 20 for size in outcome.output.split())


@needs_bwrap
async def test_a_profiler_box_has_loopback_sockets_but_no_network(boxed: Any):
    code = (
        "import socket\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(server.getsockname(), 2); print('loopback')\n"
        "try: socket.create_connection(('192.0.2.1', 80), 2); print('NETWORK')\n"
        "except OSError as e: print(e.strerror)\n"
    )
    outcome = await probe.run(boxed.backend, boxed.python(code, profiler=True), 20)
    assert outcome.output.splitlines() == ["loopback", "Network is unreachable"]


@needs_bwrap
async def test_the_work_folder_may_lie_where_only_its_owner_may_enter(boxed: Any):
    hidden = boxed.work / "private"
    (hidden / "box").mkdir(parents=True)
    hidden.chmod(0o700)
    outcome = await boxed.shell("echo kept > file; id -u", work=hidden / "box")
    assert outcome.ended == "exit", outcome.output
    assert (hidden / "box" / "file").read_text() == "kept\n"


@needs_bwrap
@needs_root
async def test_handing_over_does_not_follow_links(boxed: Any, tmp_path: Any):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    (boxed.work / "link").symlink_to(precious)
    (boxed.work / "file_link").symlink_to(precious / "file")
    await boxed.shell("true")
    assert (precious.stat().st_uid, (precious / "file").stat().st_uid) == (0, 0)


@needs_landlock
async def test_landlock_shows_the_work_folder_under_its_real_path(work: Any):
    spec = probe.BoxSpec(("sh", "-c", "echo x > /box/a; cat $HIERA_BOX/a; pwd"), work, probe.BoxLimits(1 << 30))
    outcome = await probe.run(Landlock(), spec, 20)
    assert outcome.output.split() == ["x", "/box"]


def test_every_probe_is_judged(as_started: Any):
    assert tuple(sorted(one.name for one in as_started.probes)) == tuple(sorted(NAMES))
    observed: dict[str, str] = dict.fromkeys(NAMES, "allowed")
    verdicts = {one.name: one.ok for one in probe.judge(observed)}
    assert {name for name, ok in verdicts.items() if ok} == set(MUST_WORK)
