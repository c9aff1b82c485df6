"""Does a candidate stay inside its implementation space? Pure rules on what compiler and linker left behind.

An allow-list: the pure space holds the C and C++ runtime, OpenMP and, on CUDA, the runtime and the toolkit's core
headers (libcu++ included, which is CUDA's C++ standard library). Every other header or shared object belongs to a
library (CUB, Thrust, CUTLASS, cuBLAS, …) or to PyTorch. Functions of the C library that load code, start or trace
processes, reach the network or open files lie outside every space: they would let a candidate run what this check
cannot see, or look at what it is judged by.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from hiera_mcp.model.evaluation import SpaceFinding
from hiera_mcp.model.space import MODEL_FILE, Space, Target, is_cpu, spaces_of
from hiera_mcp.sandbox.libraries import known


@dataclass(frozen=True)
class Evidence:
    """What is known of a candidate once it was compiled, or failed to."""

    includes: tuple[str, ...] = ()
    """Every file that the candidate's compilation opened (its dependency file)."""
    missing_includes: tuple[str, ...] = ()
    """Headers that were asked for and not found."""
    needed: tuple[str, ...] = ()
    """DT_NEEDED of the shared objects."""
    symbols: tuple[str, ...] = ()
    """Undefined dynamic symbols of the shared objects."""
    unresolved: tuple[str, ...] = ()
    """Symbols that the linker found nowhere."""
    files: tuple[str, ...] = ()
    """Names of the candidate's files."""
    instructions: tuple[str, ...] = ()
    """Machine instructions that enter the kernel directly."""


PURE, LIBRARIES, PYTORCH = 0, 1, 2
"""Level of a space: its place in `spaces_of(target)`."""

_C_HEADERS = re.compile(
    r"(aio|aliases|alloca|argz|ar|arpa|assert|byteswap|complex|cpio|crypt|ctype|dirent|dlfcn|elf|endian|envz|err"
    r"|errno|error|execinfo|fcntl|features|features-time64|fenv|float|fnmatch|fts|ftw|getopt|glob|gnu-versions"
    r"|grp|iconv|ifaddrs|inttypes|iso646|langinfo|lastlog|libgen|libintl|limits|link|locale|malloc|math|mcheck"
    r"|memory|monetary|mqueue|netdb|nl_types|nss|obstack|omp|paths|poll|printf|proc_service|pthread|pty|pwd"
    r"|re_comp|regex|regexp|resolv|sched|search|semaphore|setjmp|sgtty|shadow|signal|spawn|stab|stdalign|stdarg"
    r"|stdatomic|stdbit|stdbool|stdc-predef|stddef|stdint|stdio|stdio_ext|stdlib|stdnoreturn|string|strings"
    r"|syscall|sysexits|syslog|termio|termios|tgmath|thread_db|threads|time|ttyent|uchar|ucontext|ulimit|unistd"
    r"|utime|utmp|utmpx|values|wait|wchar|wctype|wordexp)\.h"
)
"""Headers of the C library that lie directly in its include folder (glibc, `make install-headers`)."""

_C_FOLDERS = re.compile(r"(bits|sys|gnu|asm|asm-generic|linux|arpa|net|netinet|c\+\+|finclude)/")
_COMPILER = re.compile(r"/lib(32|64|exec)?/(gcc|clang)(-cross)?/.*/include(-fixed)?/|/include/c\+\+/")
_TOOLKIT = re.compile(
    r"(cuda|nv|crt|cooperative_groups)/"
    r"|(cuda(_\w+|rt\w*|[A-Z]\w*)?|cooperative_groups|cuComplex|(device|driver|vector|math|surface|texture|host)_\w+"
    r"|sm_\d\d_\w+|builtin_types|channel_descriptor|common_functions|library_types|fatbinary_section|mma)\.hp?p?$"
)
_PYTORCH = re.compile(r"(.*/)?(torch|ATen|c10|caffe2|pybind11|THC?|python3\.\d+)/|Python\.h$")

_PYTHON = re.compile(r"_?Py[A-Z_]")

_C_LIBRARIES = re.compile(r"(ld-linux.*|libc|libm|libmvec|libpthread|librt|libstdc\+\+|libgcc_s|libgomp|libatomic)\.so")
_CUDA_LIBRARIES = re.compile(r"(libcudart|libcuda)\.so")
_PYTORCH_LIBRARIES = re.compile(r"lib(torch|c10|python3|shm|aoti)\w*(\.\d+)*\.so")


def _named(words: str) -> re.Pattern[str]:
    """C functions by these names, also by those that libc itself calls them: `_IO_popen`, `__libc_fork`, `__open_nocancel`."""
    return re.compile(rf"(_IO_|__libc_|__GI_|_{{1,2}})?({words})(_nocancel|_?64|_2)*")


_FORBIDDEN: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "loads code that the space check cannot see",
        re.compile(
            r"(__libc_)?dl(m?open|v?sym|close|info|addr1?|_iterate_phdr)(_mode)?|_r_debug|_dl_\w+|_rtld_global\w*"
        ),
    ),
    (
        "starts or controls processes",
        _named(
            r"system|p(roc_)?open|wordexp|v?fork(pty)?|Fork|clone3?|posix_spawnp?|f?exec(l|v|le|ve|lp|vp|vpe|veat)"
            r"|ptrace|process_vm_(read|write)v|process_m\w+|pidfd_\w+|kill|killpg|tgkill|sigqueue"
            r"|pthread_atfork|register_atfork|unshare|setns|prctl|seccomp|daemon|openpty|login_tty|posix_openpt|timer_create"
        ),
    ),
    ("makes system calls that the space check cannot see", re.compile(r"syscall|io_uring_\w+|\w+ \(instruction\)")),
    (
        "talks to other processes",
        _named(
            r"socket(pair)?|connect|bind|listen|accept4?|send(to|msg|mmsg|file)?|recv(from|msg|mmsg)?|getaddrinfo"
            r"|gethostby\w+|rexec(_af)?|rcmd(_af)?|shm_open|sem_open|mq_\w+|shmget|shmat|msgget|semget|mkfifo(at)?|memfd_create"
        ),
    ),
    (
        "opens files",
        _named(
            r"open(at2?)?|creat|(file_)?f(re)?open|fdopen|f?d?opendir|tmpfile|mk(o?s)?temps?|scandir(at)?|n?ftw"
            r"|fts_open|setmntent|iconv_open|readlink(at)?|_ZNSt13basic_filebuf\w+|_ZNSt14basic_[io]fstream\w+|_ZNSt13basic_fstream\w+"
            r"|_ZNSt10filesystem\w+|_ZNKSt10filesystem\w+"
        ),
    ),
)


def findings(target: Target, space: Space, evidence: Evidence) -> tuple[SpaceFinding, ...]:
    """Everything that lies outside `space`, one finding per thing, in a stable order."""
    level = spaces_of(target).index(space)
    found = [
        *_graded("file", evidence.files, _file_level, target, level),
        *_first_of_each_root(_graded("include", evidence.includes, lambda f: header_level(f, target), target, level)),
        *_graded("include", evidence.missing_includes, lambda f: missing_level(f, target), target, level),
        *_graded("needed_library", evidence.needed, lambda n: shared_object_level(n, target), target, level),
        *_graded("symbol", evidence.unresolved, lambda s: symbol_level(s, target), target, level),
        *_graded("symbol", evidence.symbols, _interpreter_level, target, level),
        *_forbidden((*evidence.symbols, *evidence.unresolved, *(f"{i} (instruction)" for i in evidence.instructions))),
    ]
    return tuple(dict.fromkeys(found))


def header_level(path: str, target: Target) -> int | None:
    """The level that a file opened by the compiler belongs to. Relative paths are files of the work folder."""
    if not path.startswith("/"):
        return PURE
    name = _name_below_include(path)
    if _PYTORCH.match(name) or "/torch/include/" in path:
        return PYTORCH
    if _is_core(path, name) or (not is_cpu(target) and _TOOLKIT.match(name)):
        return PURE
    return LIBRARIES if "/include/" in path else None


def missing_level(name: str, target: Target) -> int | None:
    """The level of a header that does not exist here. An unknown name is a compile error and no more: level 0."""
    if _PYTORCH.match(name):
        return PYTORCH
    return LIBRARIES if any(re.fullmatch(k.headers, name) for k in known(target)) else PURE


def shared_object_level(soname: str, target: Target) -> int | None:
    """The level of a shared object; None for one that belongs to no space."""
    if _C_LIBRARIES.match(soname) or (not is_cpu(target) and _CUDA_LIBRARIES.match(soname)):
        return PURE
    if _PYTORCH_LIBRARIES.match(soname):
        return PYTORCH
    stems = (stem for k in known(target) for stem in k.files)
    return LIBRARIES if any(soname.startswith(f"lib{stem}.so") for stem in stems) else None


def symbol_level(symbol: str, target: Target) -> int | None:
    """The level of a function that the linker did not find. An unknown name is a compile error and no more: level 0."""
    if _PYTHON.match(symbol):
        return PYTORCH
    return LIBRARIES if any(k.symbols and re.fullmatch(k.symbols, symbol) for k in known(target)) else PURE


def reason(finding: SpaceFinding) -> str:
    """Why something lies outside, in a few words."""
    if finding.smallest_space is not None:
        return f"it belongs to the space {finding.smallest_space}"
    why = next((why for why, pattern in _FORBIDDEN if pattern.fullmatch(finding.what)), None)
    return f"it {why}, which no space allows" if why else "no space allows it"


def _interpreter_level(symbol: str) -> int:
    """The runner's process offers Python's C API to a library that refers to it weakly, without linking anything."""
    return PYTORCH if _PYTHON.match(symbol) else PURE


def _file_level(name: str) -> int:
    return PYTORCH if name == MODEL_FILE or name.endswith(".py") else PURE


def _name_below_include(path: str) -> str:
    """`bits/types.h` of `/usr/include/x86_64-linux-gnu/bits/types.h`."""
    _, found, name = path.partition("/include/")
    return re.sub(r"^(\w+-linux-\w+|cccl)/", "", name) if found else path


def _is_core(path: str, name: str) -> bool:
    if _COMPILER.search(path):
        return True
    return bool(_C_FOLDERS.match(name) or _C_HEADERS.fullmatch(name))


def _graded(
    kind: str, things: Iterable[str], grade: Callable[[str], int | None], target: Target, allowed: int
) -> Iterator[SpaceFinding]:
    for thing in things:
        level = grade(thing)
        if level is None or level > allowed:
            smallest = None if level is None else str(spaces_of(target)[level])
            what = _name_below_include(thing) if kind == "include" else thing
            yield SpaceFinding.model_validate({"evidence": kind, "what": what, "smallest_space": smallest})


def _first_of_each_root(found: Iterable[SpaceFinding]) -> Iterator[SpaceFinding]:
    """One header pulls in hundreds of its own library: the first of each folder is the one that was asked for."""
    seen: set[str] = set()
    for finding in found:
        root = finding.what.partition("/")[0]
        if root not in seen:
            seen.add(root)
            yield finding


def _forbidden(symbols: Iterable[str]) -> Iterator[SpaceFinding]:
    for symbol in symbols:
        if any(pattern.fullmatch(symbol) for _, pattern in _FORBIDDEN):
            yield SpaceFinding(evidence="symbol", what=symbol, smallest_space=None)
