"""What one stretch of work costs the processor, by the kernel's own accounts."""

import ctypes
import errno
import threading
import time

import pytest

from hiera_mcp.model.work import HostCounts
from hiera_mcp.sandbox.child import host_counters
from hiera_mcp.sandbox.child.host_counters import counted, explain

SOFTWARE, CPU_CLOCK_NS, PAGE_FAULTS = 1, 1, 2


def spin(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def touch(size: int) -> None:
    ctypes.memset(ctypes.create_string_buffer(size), 1, size)


def test_work_of_all_threads_is_counted_and_waiting_is_not():
    with counted() as counts:
        threads = [threading.Thread(target=spin, args=(0.05,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(0.1)
    found = HostCounts.model_validate(counts)
    assert 0.09 < found.user_seconds + found.system_seconds < found.seconds * found.processors
    assert found.seconds > 0.15


def test_memory_that_is_touched_first_is_seen_as_page_faults():
    with counted() as counts:
        touch(64 << 20)
    assert HostCounts.model_validate(counts).page_faults >= (64 << 20) / (2 << 20)  # huge pages at the most


def test_counters_add_up_over_threads_that_are_there_and_those_that_come(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(host_counters, "EVENTS", {"cycles": (SOFTWARE, CPU_CLOCK_NS)})
    go, gone = threading.Event(), threading.Event()

    def worker() -> None:
        go.wait()
        spin(0.05)
        gone.set()

    there = threading.Thread(target=worker)
    there.start()
    with counted() as counts:
        go.set()
        comes = threading.Thread(target=spin, args=(0.05,))
        comes.start()
        gone.wait()
        comes.join()
    there.join()
    found = HostCounts.model_validate(counts)
    assert found.refused or (found.cycles or 0) >= 0.09e9


def test_what_was_counted_or_why_not_is_always_told():
    with counted() as counts:
        spin(0.01)
    found = HostCounts.model_validate(counts)
    assert (found.instructions is None) == bool(found.refused)


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOENT, "virtual machine"), (errno.EACCES, "perf_event_paranoid"), (errno.ENOSYS, "cannot be opened")],
)
def test_a_refusal_says_what_it_means(number: int, words: str):
    assert words in explain(number)
