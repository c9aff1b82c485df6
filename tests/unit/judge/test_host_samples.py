"""Where the threads of a process are: samples of the kernel's clock, and what lies at their addresses."""

import ctypes
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.model.work import HostSamples
from hiera_mcp.sandbox.child.host_samples import SAMPLED_S, SAMPLES, Hits, records, sampled
from hiera_mcp.sandbox.child.host_symbols import Objects, placed

SOURCE = """
extern "C" double own_loop(long n) {
    double s = 0;
    for (long i = 0; i < n; ++i) s = s / 1.5 + i;
    return s;
}
"""
REFUSED = """
from hiera_mcp.sandbox.child import host_samples, seccomp
seccomp.install(seccomp.program())
with host_samples.sampled(0.1) as hits:
    pass
print(hits.refused, sum(hits.addresses.values()))
"""
addresses = st.integers(0, 2**64 - 1)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    (folder / "a.cpp").write_text(SOURCE)
    subprocess.run(["g++", "-O2", "-shared", "-fPIC", "a.cpp", "-o", "own.so"], cwd=folder, check=True)
    return folder / "own.so"


def called_for(library: Path, seconds: float, threads: int) -> Hits:
    loop = ctypes.CDLL(str(library)).own_loop
    loop.argtypes = [ctypes.c_long]

    def work(until: float) -> None:
        while time.perf_counter() < until:
            loop(100_000)

    with sampled(seconds) as hits:
        until = time.perf_counter() + seconds
        others = [threading.Thread(target=work, args=(until,)) for _ in range(threads - 1)]
        for thread in others:
            thread.start()
        work(until)
        for thread in others:
            thread.join()
    if hits.refused:
        pytest.skip(hits.refused)
    return hits


def test_samples_of_a_loop_lie_in_its_library(library: Path) -> None:
    hits = called_for(library, 0.3, threads=1)
    found = HostSamples.model_validate({"calls": 1, "full": hits.full, **placed(hits.addresses, library)})
    own = sum(n for _, n in found.own)
    assert own > 0.5 * hits.addresses.total() > 0
    assert all(offset < library.stat().st_size for offset, _ in found.own)


def test_threads_that_start_meanwhile_are_sampled_too(library: Path) -> None:
    hits = called_for(library, 0.3, threads=3)
    assert hits.addresses.total() > 0 and placed(hits.addresses, library)["own"]


def test_a_function_of_another_library_is_named(library: Path) -> None:
    hits = called_for(library, 0.3, threads=1)
    names = {(o["library"], o["function"]) for o in placed(hits.addresses, Path("/nowhere.so"))["others"]}
    assert ("own.so", "own_loop") in names


def test_a_filter_that_refuses_every_way_is_told(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "refused" in done.stdout and "nor can its threads be stopped" in done.stdout
    assert done.stdout.strip().endswith(" 0")


@given(st.lists(addresses))
def test_records_are_read_as_the_kernel_writes_them(found: list[int]) -> None:
    samples = [struct.pack("=IHHQ", 9, 2, 16, address) for address in found]
    throttled = struct.pack("=IHHQQQ", 5, 0, 32, 1, 2, 3)
    assert records(b"".join([throttled, *samples, throttled])) == found
    assert records(b"".join(samples)[:-1]) == found[:-1]


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_an_error(data: bytes) -> None:
    assert len(records(data)) <= len(data) // 16


@pytest.fixture
def pinned() -> Iterator[None]:
    """This thread stays on one processor, so that it has one ring."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.mark.usefixtures("pinned")
def test_a_ring_without_room_is_told(library: Path) -> None:
    loop = ctypes.CDLL(str(library)).own_loop
    loop.argtypes = [ctypes.c_long]
    with sampled(SAMPLED_S) as hits:
        until = time.thread_time() + 3 * SAMPLED_S  # room is for twice as many
        while not hits.refused and time.thread_time() < until:
            loop(100_000)
    if hits.clock:
        pytest.skip(hits.clock)
    assert hits.full >= 1 and hits.addresses.total() > SAMPLES


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=8), addresses)
def test_an_address_belongs_to_the_mapping_around_it(sizes: Sequence[int], address: int) -> None:
    rows, at = list[str](), 4096
    for n, size in enumerate(sizes):
        rows.append(f"{at:x}-{at + size:x} r-xp 00000000 08:01 {n}    /lib/part {n // 2}.so")
        at += size + n % 2  # some lie side by side, some apart
    objects = Objects("\n".join(reversed(rows)))
    assert objects.at(4096) == ("/lib/part 0.so", 0)
    path, offset = objects.at(address % (2 * at))
    assert offset < at and (path == "" or path in {f"/lib/part {n}.so" for n in range(4)})


@given(st.text(max_size=200))
def test_any_text_is_read_as_a_map_without_an_error(text: str) -> None:
    assert isinstance(Objects(text).at(1)[0], str)


def test_memory_without_a_name_belongs_to_no_library() -> None:
    objects = Objects("1000-2000 rwxp 00000000 00:00 0 \n3000-4000 r-xp 00001000 08:01 5 /lib/x.so\n")
    assert [objects.at(a) for a in (0x1800, 0x2800, 0x3010)] == [("", 0), ("", 0), ("/lib/x.so", 0x10)]


def test_this_process_knows_its_own_library(library: Path) -> None:
    loop = ctypes.CDLL(str(library)).own_loop
    start = ctypes.cast(loop, ctypes.c_void_p).value or 0
    path, offset = Objects(Path("/proc/self/maps").read_text()).at(start)
    assert (path, 0 < offset < library.stat().st_size) == (os.path.realpath(library), True)
