"""Where the threads of a process are, seen by stopping them: for hosts that refuse perf_event_open, as containers often do.

    python -P -m hiera_mcp.sandbox.child.host_stops PID

A process of its own stops each thread that works, reads its instruction pointer and lets it go on, a few hundred times a second. It
writes an empty line once it can, else the reason; when its input ends, the samples. A thread in a system call is not sampled (on
AArch64 it is, where it comes back), one in a page fault is.

Source: ptrace(2); linux/elf.h (NT_PRSTATUS); user_regs_struct and user_pt_regs in the kernel's headers; proc(5) for `stat`;
Documentation/admin-guide/LSM/Yama.rst for PR_SET_PTRACER.
"""

import contextlib
import ctypes
import json
import os
import select
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path

PAUSE_S = 0.001
MOST_ADDRESSES = 50_000
_PROGRAM_COUNTER = {"x86_64": 16, "aarch64": 32}
"""Which of the general registers, all of 64 bits, it is."""
_SYSTEM_CALL = {"x86_64": 15}
"""orig_rax: the number of the system call; -1 where there is none."""
_NONE = 1 << 63
_SET_PTRACER = 0x59616D61
_CONTINUE, _SEIZE, _INTERRUPT, _GET_REGISTERS = 7, 0x4206, 0x4207, 0x4204
_GENERAL = 1
_ANY_THREAD = 0x40000000
_EVENT_STOP = 128
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class Watcher:
    """The other process, seen from the one that it watches."""

    def __init__(self) -> None:
        argv = [sys.executable, "-P", "-m", "hiera_mcp.sandbox.child.host_stops", str(os.getpid())]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        _libc.prctl(_SET_PTRACER, ctypes.c_ulong(self._process.pid), *[ctypes.c_ulong(0)] * 3)
        said = self._talk("\n")
        self.refused = said.strip() or ("" if said else "the process that was to watch the threads ended")

    def _talk(self, line: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line)
            self._process.stdin.flush()
        return self._process.stdout.readline()

    def end(self) -> Counter[int]:
        """Address → samples."""
        found, _ = self._process.communicate()
        return Counter({int(address): int(n) for address, n in json.loads(found or "{}").items()})


@contextlib.contextmanager
def watched() -> Generator[tuple[Counter[int], str]]:
    """Samples of all threads during the block, which are there at its end; and why there will be none."""
    found: Counter[int] = Counter()
    watcher = Watcher()
    try:
        yield found, watcher.refused
    finally:
        found.update(watcher.end())


class _Registers(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


class Stopper:
    """Stops the threads of a process.

    Raises:
        OSError: it must not be watched.
        KeyError: this processor's registers are not known.
    """

    def __init__(self, pid: int) -> None:
        machine = os.uname().machine
        self._at, self._call = _PROGRAM_COUNTER[machine], _SYSTEM_CALL.get(machine)
        self._tasks = Path(f"/proc/{pid}/task")
        self._memory = (ctypes.c_uint64 * 128)()
        self._held = {pid}
        self.addresses: Counter[int] = Counter()
        _ptrace(_SEIZE, pid)

    def look(self) -> None:
        """Sample all threads that work, at once.

        Raises:
            OSError: the process is gone.
        """
        self._pass_on()
        working = [thread for thread in map(int, os.listdir(self._tasks)) if self._works(thread)]
        for step in (self._interrupt, self._sample):
            for thread in working:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):  # it has ended
                    step(thread)

    def _works(self, thread: int) -> bool:
        try:
            return (self._tasks / f"{thread}/stat").read_text().rpartition(")")[2].split()[0] == "R"
        except (OSError, IndexError):
            return False

    def _interrupt(self, thread: int) -> None:
        if thread not in self._held:
            _ptrace(_SEIZE, thread)
            self._held.add(thread)
        _ptrace(_INTERRUPT, thread)

    def _sample(self, thread: int) -> None:
        while True:
            _, status = os.waitpid(thread, _ANY_THREAD)
            if not os.WIFSTOPPED(status):
                self._held.discard(thread)
                return
            if status >> 16 == _EVENT_STOP:
                break
            _ptrace(_CONTINUE, thread, data=os.WSTOPSIG(status))
        self._take(thread)
        _ptrace(_CONTINUE, thread)

    def _take(self, thread: int) -> None:
        found = _Registers(ctypes.addressof(self._memory), ctypes.sizeof(self._memory))
        _ptrace(_GET_REGISTERS, thread, _GENERAL, ctypes.addressof(found))
        if self._call is None or self._memory[self._call] >= _NONE:
            self.addresses[self._memory[self._at]] += 1

    def _pass_on(self) -> None:
        """Deliver the signals that threads have got meanwhile, and forget those that have ended."""
        while self._held:
            thread, status = os.waitpid(-1, os.WNOHANG | _ANY_THREAD)
            if not thread:
                return
            if not os.WIFSTOPPED(status):
                self._held.discard(thread)
            else:
                signal = 0 if status >> 16 == _EVENT_STOP else os.WSTOPSIG(status)
                _ptrace(_CONTINUE, thread, data=signal)


def _ptrace(request: int, thread: int, address: int = 0, data: int = 0) -> None:
    if _libc.ptrace(request, thread, address, data) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), f"ptrace {request:#x}")


def main() -> None:
    sys.stdin.readline()  # from then on this process may be allowed to watch the other
    try:
        stopper = Stopper(int(sys.argv[1]))
    except (OSError, KeyError) as e:
        sys.stdout.write(f"nor can its threads be stopped ({e})\n")
        return
    sys.stdout.write("\n")
    sys.stdout.flush()
    with contextlib.suppress(OSError):
        while not select.select([sys.stdin], [], [], PAUSE_S)[0]:
            stopper.look()
    json.dump(dict(stopper.addresses.most_common(MOST_ADDRESSES)), sys.stdout)


if __name__ == "__main__":
    main()
