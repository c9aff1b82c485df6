"""Each way to end has its own name, and in none of them anything is left running."""

import asyncio
import gc
import os
import resource
import signal
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.errors import SandboxError
from hiera_mcp.sandbox.child.tree import children
from hiera_mcp.sandbox.isolation.box import Bind, BoxLimits
from hiera_mcp.sandbox.isolation.process import run, start

pytestmark = pytest.mark.asyncio


async def test_an_exit_status_comes_through(bench: Any):
    outcome = await bench.shell("echo out; echo err >&2; exit 3")
    assert (outcome.ended, outcome.code) == ("exit", 3)
    assert outcome.output.splitlines() == ["out", "err"]


async def test_a_signal_comes_through(bench: Any):
    outcome = await bench.shell("kill -SEGV $$")
    assert (outcome.ended, outcome.code) == ("signal", signal.SIGSEGV)


async def test_a_program_that_does_not_exist_is_an_exit_and_not_an_error_of_ours(bench: Any):
    outcome = await run(bench.backend, bench.spec("no-such-program"), 10)
    assert (outcome.ended, outcome.code) == ("exit", 127)
    assert "no-such-program" in outcome.output


async def test_standard_input_is_empty(bench: Any):
    assert (await bench.shell("wc -c")).output.strip() == "0"


async def test_a_hanging_program_is_timed_out(bench: Any):
    outcome = await bench.shell("sleep 60", timeout_s=0.3)
    assert outcome.ended == "timeout"


async def test_closing_the_output_does_not_escape_the_deadline(bench: Any):
    outcome = await bench.shell("exec >/dev/null 2>&1; sleep 60", timeout_s=0.3)
    assert outcome.ended == "timeout"


async def test_daemons_that_ignore_signals_and_leave_the_session_die_at_the_deadline(bench: Any):
    script = 'trap "" TERM INT HUP; (setsid sh -c "trap \\"\\" TERM HUP; sleep 61; sleep 61" &) ; sleep 60'
    outcome = await bench.shell(script, timeout_s=0.5)
    assert outcome.ended == "timeout"
    assert bench.left_over() == []


async def test_daemons_die_when_the_program_ends_by_itself(bench: Any):
    outcome = await bench.shell("(setsid sleep 61 >/dev/null 2>&1 &); (setsid sleep 62 &); exit 4")
    assert (outcome.ended, outcome.code) == ("exit", 4)
    assert bench.left_over() == []


async def test_kill_ends_everything_and_may_be_repeated(bench: Any):
    process = await start(bench.backend, bench.spec("sh", "-c", "(setsid sleep 61 &); sleep 60"))
    await asyncio.sleep(0.2)
    await process.kill()
    assert bench.left_over() == []
    await process.kill()
    assert (await process.wait()).ended == "killed"


async def test_kill_right_after_start_leaves_nothing(bench: Any):
    for _ in range(5):
        process = await start(bench.backend, bench.spec("sleep", "60"))
        await process.kill()
        assert (await process.wait()).ended == "killed"
        assert bench.left_over() == []


async def test_cancelling_the_waiter_kills_the_box(bench: Any):
    waiter = asyncio.create_task(bench.shell("(setsid sleep 61 &); sleep 60"))
    await asyncio.sleep(0.3)
    assert bench.left_over() != []
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert bench.left_over() == []


async def test_several_may_wait_for_one_box(bench: Any):
    process = await start(bench.backend, bench.spec("sh", "-c", "exit 5"))
    first, second = await asyncio.gather(process.wait(10), process.wait(10))
    assert first == second == await process.wait()


async def test_boxes_run_side_by_side(bench: Any):
    outcomes = await asyncio.gather(*(bench.shell(f"exit {number}") for number in range(6)))
    assert [outcome.code for outcome in outcomes] == list(range(6))


async def test_no_descriptor_and_no_zombie_remain(bench: Any):
    await bench.shell("true")
    gc.collect()  # what earlier tests left to the collector may not go in the middle of this one
    before, theirs = len(os.listdir("/proc/self/fd")), set(children(os.getpid()))
    for _ in range(3):
        await bench.shell("(setsid sleep 61 &); true")
        await bench.shell("sleep 60", timeout_s=0.05)
    assert len(os.listdir("/proc/self/fd")) == before
    assert set(children(os.getpid())) <= theirs


async def test_a_flood_of_output_ends_the_box_and_is_cut(bench: Any):
    outcome = await run(bench.backend, bench.spec("yes", "flood"), 20)
    assert outcome.ended == "output_limit"
    assert len(outcome.output) < 70_000
    assert outcome.output_bytes > 1 << 20
    assert "bytes left out" in outcome.output


async def test_long_output_keeps_its_two_ends(bench: Any):
    outcome = await bench.shell("echo first; seq 1 60000; echo last")
    assert outcome.ended == "exit"
    assert outcome.output.startswith("first\n1\n") and outcome.output.endswith("60000\nlast\n")


async def test_many_processes_break_the_process_limit(bench: Any):
    outcome = await bench.shell("for i in $(seq 40); do sleep 60 & done; wait")
    assert outcome.ended == "process_limit"


async def test_memory_of_all_processes_together_is_limited(bench: Any):
    code = (
        "import os, time\n"
        "for _ in range(3): os.fork() and None\n"
        "block = bytearray(os.urandom(1)) * (100 << 20)\n"
        "time.sleep(60)\n"
    )
    outcome = await run(bench.backend, bench.python(code), 20)
    assert outcome.ended == "memory_limit"


async def test_memory_in_files_without_a_name_is_limited(bench: Any):
    code = (
        "import os, time\n"
        "chunk = b'x' * (1 << 20)\n"
        "held = [os.memfd_create(str(n)) for n in range(8)]\n"
        "for fd in held:\n"
        "    for _ in range(100): os.write(fd, chunk)\n"
        "time.sleep(60)\n"
    )
    outcome = await run(bench.backend, bench.python(code), 20)
    assert outcome.ended == "memory_limit"


async def test_pages_that_forked_processes_share_count_once(bench: Any):
    code = (
        "import os, time\n"
        "block = bytearray(300 << 20)\n"
        "block[::4096] = b'x' * len(block[::4096])\n"
        "for _ in range(6):\n"
        "    if os.fork() == 0: break\n"
        "time.sleep(1)\n"
    )
    outcome = await run(bench.backend, bench.python(code), 20)
    assert outcome.ended == "exit", outcome


HELD_BY_THE_KERNEL = {
    "page tables": (
        "import mmap\n"
        "big = mmap.mmap(-1, 400 << 30, flags=mmap.MAP_PRIVATE | 0x4000, prot=mmap.PROT_READ)\n"
        "big.madvise(15)\n"  # 0x4000 is MAP_NORESERVE, 15 MADV_NOHUGEPAGE; reading maps the one page of zeros, which no resident set counts
        "for at in range(0, 400 << 30, 2 << 20): big[at]\n"
    ),
    "sockets": (
        "import socket\n"
        "held = []\n"
        "while True:\n"
        "    held.append(socket.socketpair())\n"
        "    for end in held[-1]:\n"
        "        end.setblocking(False)\n"
        "        try:\n"
        "            while True: end.send(b'x' * 60000)\n"
        "        except BlockingIOError: pass\n"
    ),
}


async def test_a_socket_of_a_box_holds_no_more_than_it_is_counted_for(boxed: Any):
    code = (
        "import socket\n"
        "end, other = socket.socketpair()\n"
        "end.setblocking(False)\n"
        "end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 << 20)\n"
        "sent = 0\n"
        "try:\n"
        "    while True: sent += end.send(b'x' * 60000)\n"
        "except BlockingIOError: print(sent)\n"
    )
    outcome = await run(boxed.backend, boxed.python(code), 20)
    assert 0 < int(outcome.output) <= int(Path("/proc/sys/net/core/wmem_default").read_text()) + (64 << 10)


@pytest.mark.parametrize("what", HELD_BY_THE_KERNEL)
async def test_memory_that_the_kernel_holds_for_a_box_is_limited(bench: Any, what: str):
    code = HELD_BY_THE_KERNEL[what] + "import time; time.sleep(60)\n"
    outcome = await run(bench.backend, bench.python(code), 20)
    assert outcome.ended == "memory_limit"


async def test_memory_that_belongs_to_no_process_cannot_be_had(boxed: Any):
    code = (
        "import ctypes\n"
        "libc = ctypes.CDLL(None)\n"
        "print(libc.shmget(0, 1 << 20, 0o1600), libc.semget(0, 1, 0o1600), libc.msgget(0, 0o1600),\n"
        "      ctypes.CDLL('librt.so.1').mq_open(b'/q', 0o102, 0o600, None))\n"
    )
    outcome = await run(boxed.backend, boxed.python(code), 20)
    assert outcome.output.split() == ["-1"] * 4


async def test_one_process_at_its_memory_limit_is_told_apart_from_a_plain_failure(bench: Any):
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    limits = BoxLimits(memory_bytes=2 * own + (256 << 20))  # a peak below our own says nothing of the box
    code = "blocks = []\nwhile True: blocks.append(b'x' * (16 << 20))"
    outcome = await run(bench.backend, bench.python(code, limits=limits), 20)
    assert outcome.ended == "memory_limit"


async def test_the_memory_of_the_process_that_starts_a_box_is_not_counted_as_the_boxes(bench: Any):
    ballast = bytearray(b"x") * (700 << 20)  # more than the box may have
    outcome = await bench.shell("exit 3")
    assert len(ballast) and (outcome.ended, outcome.code) == ("exit", 3)


async def test_the_work_folder_is_limited_as_a_whole(bench: Any):
    outcome = await bench.shell("for i in $(seq 30); do head -c 8M /dev/zero > f$i; done; sleep 60")
    assert outcome.ended == "disk_limit"


async def test_deleted_files_count_while_they_are_open(bench: Any):
    script = "exec 3>a; rm a; head -c 50M /dev/zero >&3; exec 4>b; rm b; head -c 50M /dev/zero >&4; sleep 60"
    outcome = await bench.shell(script)
    assert outcome.ended == "disk_limit"


async def test_one_file_is_limited_by_the_kernel(bench: Any):
    limits = BoxLimits(memory_bytes=512 << 20, file_bytes=1 << 20)
    outcome = await bench.shell("exec head -c 2M /dev/zero > big", limits=limits)
    assert outcome.ended == "disk_limit"
    assert (bench.work / "big").stat().st_size == 1 << 20


async def test_a_box_that_cannot_be_set_up_is_an_error_of_ours(boxed: Any):
    missing = boxed.spec("true", binds=(Bind(Path("/nonexistent/folder"), "/folder"),))
    with pytest.raises(SandboxError, match="could not"):
        await run(boxed.backend, missing, 10)


async def test_the_host_folder_is_not_named_in_the_output(bench: Any):
    outcome = await bench.shell("pwd; echo $HIERA_BOX")
    assert outcome.output.split() == ["/box", "/box"]
