"""A seccomp filter as a classic BPF program, made without libseccomp.

System call numbers: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h (aarch64) of Linux.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
SOCK_DGRAM = 2
F_SIGNALS = (8, 10, 15)
"""fcntl()'s F_SETOWN, F_SETSIG and F_SETOWN_EX."""
SO_SNDBUF, SO_SNDBUFFORCE = 7, 32
NEW_NAMESPACES = 0x7E020000
"""All CLONE_NEW* flags that clone() takes."""

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_LOAD, _JUMP_EQ, _JUMP_GE, _JUMP_SET, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_AT, _ARCH_AT, _ARG0_AT, _ARG1_AT, _ARG2_AT = 0, 4, 16, 24, 32

_COMMON = {
    "bpf": (321, 280),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "mount_setattr": (442, 442),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "open_by_handle_at": (304, 265),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "pidfd_getfd": (438, 438),
}
"""Name → number on (x86-64, aarch64). No compiler, CUDA process or interpreter needs any of these."""

_TRACING = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "perf_event_open": (298, 241),
}
_WAKING = {"timer_create": (222, 107)}
"""The signal of such a timer may be SIGCONT: the kernel would let a box go that is held still."""
_X86_PORTS = {"iopl": (172, -1), "ioperm": (173, -1)}

_OUTLASTING = {
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
}
"""Memory and messages that belong to no process: they outlast who made them, and nobody can count them against a limit."""

_SHARED_HOST = {
    "shmat": (30, 196),
    "chmod": (90, -1),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, -1),
    "fchown": (93, 55),
    "lchown": (94, -1),
    "fchownat": (260, 54),
    "utime": (132, -1),
    "utimes": (235, -1),
    "futimesat": (261, -1),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "fsetxattr": (190, 7),
    "lsetxattr": (189, 6),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "fremovexattr": (199, 16),
    "lremovexattr": (198, 15),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    "inotify_add_watch": (254, 27),
    "fanotify_mark": (301, 263),
    "connect": (42, 203),
    "bind": (49, 200),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "kcmp": (312, 272),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
}
"""Ways to other processes of the host, and to files outside the box, that only namespaces of the box's own close: Landlock
says nothing of a file's mode, owner, times and attributes, nor of who watches it."""

_CLONE, _CLONE3, _SOCKET, _SOCKETPAIR, _PRLIMIT = (56, 220), (435, 435), (41, 198), (53, 199), (302, 261)
_SETSOCKOPT, _FCNTL = (54, 208), (72, 25)


def program(*, profiler: bool = False, own_namespaces: bool = True, machine: str = "") -> bytes:
    """The filter for a box.

    Args:
        profiler: allow tracing; with namespaces of its own also System V and POSIX IPC, and sockets of the internet families.
        own_namespaces: False where the box shares the host's network and IPC: then no socket can be made at all
            (connected pairs of stream sockets remain), and other processes' limits and priorities are out of reach, as are
            the modes, owners, times and attributes of files.
        machine: that of this host by default.

    Raises:
        NotImplementedError: no numbers are known for this machine.
    """
    machine = machine or os.uname().machine
    if machine not in _AUDIT_ARCH:
        raise NotImplementedError(f"no seccomp filter for {machine}; known: {', '.join(_AUDIT_ARCH)}")
    column = 0 if machine == "x86_64" else 1
    families = (AF_UNIX, AF_INET, AF_INET6, AF_NETLINK) if profiler else (AF_UNIX,)
    parts = [
        *_entry(machine),
        *_deny(_denied(column, profiler, own_namespaces)),
        *_refuse(_CLONE3[column], errno.ENOSYS),  # its flags lie behind a pointer; libc then falls back to clone
        *_deny_flags(_CLONE[column], NEW_NAMESPACES),
        *_only_families(_SOCKET[column], families if own_namespaces else ()),
        *_no_larger_buffers(_SETSOCKOPT[column]),
        *(() if profiler else _no_signals_of_choice(_FCNTL[column])),
        *(() if own_namespaces else _no_datagram_pairs(_SOCKETPAIR[column])),
        *(() if own_namespaces else _only_itself(_PRLIMIT[column])),
        _ins(_RETURN, _ALLOW),
    ]
    return b"".join(parts)


def install(code: bytes) -> None:
    """Apply the filter to this process and all it will start. Cannot be undone."""

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    no_new_privileges, set_seccomp, mode_filter = 38, 22, 2
    for call in (
        (no_new_privileges, ctypes.c_ulong(1), ctypes.c_ulong(0)),
        (set_seccomp, ctypes.c_ulong(mode_filter), ctypes.byref(filter_)),
    ):
        if libc.prctl(*call, ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
            code_ = ctypes.get_errno()
            raise OSError(code_, f"seccomp: {os.strerror(code_)}")


def _denied(column: int, profiler: bool, own_namespaces: bool) -> list[int]:
    tables = [_COMMON, _X86_PORTS]
    tables += [] if profiler else [_TRACING, _WAKING]
    tables += [] if profiler and own_namespaces else [_OUTLASTING]
    tables += [] if own_namespaces else [_SHARED_HOST]
    return [numbers[column] for table in tables for numbers in table.values() if numbers[column] >= 0]


def _ins(code: int, k: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, k & 0xFFFFFFFF)


def _entry(machine: str) -> list[bytes]:
    """Kill what uses another architecture's numbers (i386 and x32 calls would slip through the table)."""
    head = [_ins(_LOAD, _ARCH_AT), _ins(_JUMP_EQ, _AUDIT_ARCH[machine], 1, 0), _ins(_RETURN, _KILL)]
    head.append(_ins(_LOAD, _NUMBER_AT))
    if machine == "x86_64":
        head += [_ins(_JUMP_GE, 0x40000000, 0, 1), _ins(_RETURN, _KILL)]
    return head


def _refuse(number: int, code: int) -> list[bytes]:
    return [_ins(_JUMP_EQ, number, 0, 1), _ins(_RETURN, _ERRNO | code)]


def _deny(numbers: Iterable[int]) -> list[bytes]:
    return [ins for number in numbers for ins in _refuse(number, errno.EPERM)]


def _deny_flags(number: int, flags: int) -> list[bytes]:
    return _on_argument(number, _ARG0_AT, [_ins(_JUMP_SET, flags, 0, 1), _ins(_RETURN, _ERRNO | errno.EPERM)])


def _only_families(number: int, families: tuple[int, ...]) -> list[bytes]:
    checks = [_ins(_JUMP_EQ, family, len(families) - i, 0) for i, family in enumerate(families)]
    return _on_argument(number, _ARG0_AT, [*checks, _ins(_RETURN, _ERRNO | errno.EACCES)])


def _no_datagram_pairs(number: int) -> list[bytes]:
    """A datagram socket, though paired, can still send to any path."""
    check = [_ins(_AND, 0xF), _ins(_JUMP_EQ, SOCK_DGRAM, 0, 1), _ins(_RETURN, _ERRNO | errno.EACCES)]
    return _on_argument(number, _ARG1_AT, check)


def _no_larger_buffers(number: int) -> list[bytes]:
    """What lies in a socket is memory of the kernel: it stays at the default size, and who asks for more is told that it is so."""
    check = [_ins(_JUMP_EQ, SO_SNDBUF, 1, 0), _ins(_JUMP_EQ, SO_SNDBUFFORCE, 0, 1), _ins(_RETURN, _ERRNO)]
    return _on_argument(number, _ARG2_AT, check)


def _no_signals_of_choice(number: int) -> list[bytes]:
    """Input on a descriptor may send any signal to whom its owner is: SIGCONT too (see `_WAKING`)."""
    last = len(F_SIGNALS) - 1
    checks = [_ins(_JUMP_EQ, command, last - i, int(i == last)) for i, command in enumerate(F_SIGNALS)]
    return _on_argument(number, _ARG1_AT, [*checks, _ins(_RETURN, _ERRNO | errno.EPERM)])


def _only_itself(number: int) -> list[bytes]:
    """Process number 0, which means the caller."""
    return _on_argument(number, _ARG0_AT, [_ins(_JUMP_EQ, 0, 1, 0), _ins(_RETURN, _ERRNO | errno.EPERM)])


def _on_argument(number: int, offset: int, check: list[bytes]) -> list[bytes]:
    """Run `check` on an argument of one system call, then load the number again."""
    return [
        _ins(_JUMP_EQ, number, 0, len(check) + 2),
        _ins(_LOAD, offset),
        *check,
        _ins(_LOAD, _NUMBER_AT),
    ]
