"""The filter is run here by a small interpreter of classic BPF, so that both architectures are checked on either."""

import errno
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.sandbox.child import seccomp

ALLOW, KILL = "allow", "kill"
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NUMBERS = {
    "x86_64": {"socket": 41, "socketpair": 53, "clone": 56, "clone3": 435, "unshare": 272, "ptrace": 101, "mount": 165,
               "read": 0, "memfd_create": 319, "connect": 42, "prlimit64": 302, "execve": 59, "shmget": 29, "fchmodat": 268, "fchmod": 91, "utimensat": 280, "setsockopt": 54, "fcntl": 72, "timer_create": 222},
    "aarch64": {"socket": 198, "socketpair": 199, "clone": 220, "clone3": 435, "unshare": 97, "ptrace": 117, "mount": 40,
                "read": 63, "memfd_create": 279, "connect": 203, "prlimit64": 261, "execve": 221, "shmget": 194, "fchmodat": 53, "fchmod": 52, "utimensat": 88, "setsockopt": 208, "fcntl": 25, "timer_create": 107},
}  # fmt: skip
machines = pytest.mark.parametrize("machine", ARCHITECTURES)


def decide(program: bytes, arch: int, number: int, *arguments: int) -> str:
    """What the kernel would do: `allow`, `kill`, or the name of an errno."""
    data = struct.pack("=IIQ6Q", number, arch, 0, *(arguments + (0,) * (6 - len(arguments))))
    code = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    at = accumulator = 0
    while True:
        operation, if_true, if_false, k = code[at]
        at += 1
        if operation == 0x20:
            accumulator = struct.unpack_from("=I", data, k)[0]
        elif operation == 0x54:
            accumulator &= k
        elif operation == 0x06:
            return {0x7FFF0000: ALLOW, 0x80000000: KILL}.get(k) or errno.errorcode.get(k & 0xFFFF, "0")
        else:
            holds = {0x15: accumulator == k, 0x35: accumulator >= k, 0x45: bool(accumulator & k)}[operation]
            at += if_true if holds else if_false


def ask(machine: str, call: str, *arguments: int, **options: bool) -> str:
    program = seccomp.program(machine=machine, **options)
    return decide(program, ARCHITECTURES[machine], NUMBERS[machine][call], *arguments)


@machines
@pytest.mark.parametrize("call", ["read", "execve", "memfd_create", "connect", "socketpair"])
def test_ordinary_calls_pass(machine: Any, call: Any):
    assert ask(machine, call) == ALLOW


@machines
@pytest.mark.parametrize("call", ["unshare", "mount", "ptrace"])
def test_dangerous_calls_are_refused(machine: Any, call: Any):
    assert ask(machine, call) == "EPERM"


@machines
def test_a_thread_may_be_made_and_a_namespace_may_not(machine: Any):
    clone_vm_thread, clone_newuser, clone_newns = 0x00010100, 0x10000000, 0x00020000
    assert ask(machine, "clone", clone_vm_thread) == ALLOW
    assert ask(machine, "clone", clone_newuser) == "EPERM"
    assert ask(machine, "clone", clone_vm_thread | clone_newns) == "EPERM"
    assert ask(machine, "clone3") == "ENOSYS"


@machines
@given(command=st.integers(0, 1100))
def test_no_signal_of_choice_can_be_sent_to_a_box_that_is_held_still(machine: Any, command: Any):
    """F_SETOWN, F_SETSIG, F_SETOWN_EX, and timers: each could send SIGCONT."""
    assert ask(machine, "fcntl", 3, command) == ("EPERM" if command in (8, 10, 15) else ALLOW)
    assert ask(machine, "timer_create") == "EPERM"
    assert ask(machine, "timer_create", profiler=True) == ask(machine, "fcntl", 3, command, profiler=True) == ALLOW


@machines
@given(family=st.integers(0, 50))
def test_only_unix_sockets_may_be_made(machine: Any, family: Any):
    assert ask(machine, "socket", family) == (ALLOW if family == 1 else "EACCES")


@machines
@given(family=st.integers(0, 50))
def test_a_profiler_may_make_internet_sockets_too(machine: Any, family: Any):
    assert ask(machine, "socket", family, profiler=True) == (ALLOW if family in (1, 2, 10, 16) else "EACCES")
    assert ask(machine, "ptrace", profiler=True) == ALLOW


@machines
@pytest.mark.parametrize("own_namespaces", [True, False])
def test_only_a_profiler_may_look_into_processes(machine: Any, own_namespaces: Any):
    assert ask(machine, "ptrace", own_namespaces=own_namespaces) == "EPERM"
    assert ask(machine, "ptrace", profiler=True, own_namespaces=own_namespaces) == ALLOW


@machines
@given(kind=st.integers(1, 10), flags=st.sampled_from([0, 0o2000000, 0o4000]))
def test_without_namespaces_only_connected_pairs_remain(machine: Any, kind: Any, flags: Any):
    shared = {"own_namespaces": False}
    assert ask(machine, "socket", 1, **shared) == "EACCES"
    assert ask(machine, "connect", **shared) == "EPERM"
    assert ask(machine, "socketpair", 1, kind | flags, **shared) == ("EACCES" if kind == 2 else ALLOW)


@machines
def test_without_namespaces_the_limits_of_others_are_out_of_reach(machine: Any):
    assert ask(machine, "prlimit64", 0, own_namespaces=False) == ALLOW
    assert ask(machine, "prlimit64", 4711, own_namespaces=False) == "EPERM"


@machines
@pytest.mark.parametrize("call", ["fchmodat", "fchmod", "utimensat"])
def test_without_a_file_system_of_its_own_a_box_may_not_touch_the_modes_and_times_of_files(machine: Any, call: Any):
    assert ask(machine, call) == ALLOW
    assert ask(machine, call, own_namespaces=False) == "EPERM"


@machines
@given(option=st.integers(0, 80))
def test_the_buffers_of_sockets_stay_as_they_are(machine: Any, option: Any):
    assert ask(machine, "setsockopt", 3, 1, option) == ("0" if option in (7, 32) else ALLOW)


@machines
def test_only_a_profiler_may_make_memory_that_outlasts_its_process(machine: Any):
    assert ask(machine, "shmget") == "EPERM"
    assert ask(machine, "shmget", profiler=True) == ALLOW
    assert ask(machine, "shmget", profiler=True, own_namespaces=False) == "EPERM"


@machines
@given(number=st.integers(0, 500), other=st.sampled_from([0x40000003, 0xC0000028]))
def test_another_architecture_is_killed(machine: Any, number: Any, other: Any):
    assert decide(seccomp.program(machine=machine), other, number) == KILL


@given(number=st.integers(0x40000000, 0x40000000 + 600))
def test_x32_calls_are_killed(number: Any):
    assert decide(seccomp.program(machine="x86_64"), ARCHITECTURES["x86_64"], number) == KILL


def test_an_unknown_machine_is_refused_with_the_known_ones():
    with pytest.raises(NotImplementedError, match="x86_64"):
        seccomp.program(machine="riscv64")
