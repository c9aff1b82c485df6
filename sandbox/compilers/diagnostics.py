"""Compiler logs, read: diagnostics under the candidate's own file names, and what a failed build asked for in vain.

Formats: g++ (`file:line:col: error: …`), nvcc's front end (`file(line): error: …`), ptxas, nvcc, nvlink and as
(`ptxas error   : …`), ld (`undefined reference to …`).
"""

import re
from collections.abc import Iterable, Iterator

from hiera_mcp.model.evaluation import Diagnostic
from hiera_mcp.sandbox.libraries import Known

MOST_DIAGNOSTICS = 40
LOG_CHARACTERS = 24_000

_GXX = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?P<severity>(?:fatal )?error|warning|note): (?P<text>.+)$"
)
_EDG = re.compile(
    r"^(?P<file>\S[^()\n]*)\((?P<line>\d+)\): (?P<severity>(?:catastrophic )?error|warning)(?: #[\w-]+)?: (?P<text>.+)$"
)
_TOOL = re.compile(
    r"^(?P<file>ptxas|nvlink|nvcc|cudafe\+\+|cicc|fatbinary|cc1plus|g\+\+)(?: \S+, line \d+)?\s*[:;]?\s*"
    r"(?P<severity>fatal(?: error)?|error|warning)\s*: (?P<text>.+)$"
)
_AS = re.compile(r"^\S+\.s:\d+: (?P<severity>Error|Warning): (?P<text>.+)$")
_UNDEFINED = re.compile(r"undefined reference to [`'](?P<symbol>[^']+)'|Undefined reference to '(?P<device>[^']+)'")
_MULTIPLE = re.compile(r"multiple definition of [`'](?P<symbol>[^']+)'")
_MISSING = re.compile(
    r"(?:fatal|catastrophic) error: (?:cannot open source file \")?(?P<name>[^\s:\"]+)\"?(?:: No such file or directory)"
)
_MEMORY = re.compile(
    r"^(?:cc1plus: out of memory|virtual memory exhausted|\S*(?:ld|as): .*memory exhausted|(?:.*: )?catastrophic error: out of memory"
    r"|terminate called after throwing an instance of 'std::bad_alloc'|\S*g\+\+: fatal error: Killed signal)",
    re.MULTILINE,
)
_DISK = re.compile(r"No space left on device|File too large|File size limit exceeded")
_PATH = re.compile(r"(?<![\w/.<\"*-])(?:\./)?(?:/[\w.+@~-]+){2,}")


def scrub(log: str) -> str:
    """The log without paths of the host: `/box/x` becomes `x`, a header `<its/name.h>`, all else its last part."""
    return _PATH.sub(lambda m: shown_name(m.group()), log)


def shown_name(path: str) -> str:
    """A file's name as the candidate knows it."""
    path = path.removeprefix("./")
    if path.startswith("/box/"):
        return path.removeprefix("/box/")
    if not path.startswith("/"):
        return path
    _, found, below = path.rpartition("/include/")
    return f"<{below if found else path.rpartition('/')[2]}>"


def cut(log: str, limit: int = LOG_CHARACTERS) -> str:
    """The log's beginning and end, with a line that counts what was left out."""
    if len(log) <= limit:
        return log
    head, tail = limit * 3 // 4, limit // 4
    return f"{log[:head]}\n… {len(log) - head - tail} characters left out …\n{log[-tail:]}"


def parse(log: str, source: str) -> tuple[Diagnostic, ...]:
    """What the log says, errors first, without repetition. `source` is the file that link errors are put down to."""
    lines = log.splitlines()
    found = list(dict.fromkeys((*_messages(lines, source), *_link_errors(lines, source))))
    rank = {"error": 0, "warning": 1, "note": 2}
    return tuple(sorted(found, key=lambda d: rank[d.severity])[:MOST_DIAGNOSTICS])


def unresolved(log: str) -> tuple[str, ...]:
    """Symbols that the linker found nowhere, without their parameter lists."""
    names = (m.group("symbol") or m.group("device") for m in _UNDEFINED.finditer(log))
    return tuple(dict.fromkeys(name.partition("(")[0] for name in names))


def missing_includes(log: str) -> tuple[str, ...]:
    """Headers that were asked for and not found."""
    return tuple(dict.fromkeys(m.group("name") for m in _MISSING.finditer(log)))


def exhausted(log: str) -> str | None:
    """Which resource the compiler says that it ran out of; None when it does not say so."""
    if _MEMORY.search(log):
        return "memory"
    return "disk space" if _DISK.search(log) else None


def install_hint(header: str, libraries: Iterable[Known]) -> str | None:
    """Which library a missing header belongs to, and how to get it; None when it belongs to none that is known."""
    if re.match(r"(torch|ATen|c10|pybind11)/|Python\.h", header):
        return (
            f'{header} is not available: compiled files never include PyTorch. Offer plain extern "C" functions and '
            "call them from model_new.py, in the space that allows PyTorch."
        )
    library = next((k for k in libraries if re.fullmatch(k.headers, header)), None)
    if library is None:
        return None
    return (
        f"{header} belongs to {library.name}. It is used only in a space that allows libraries, and must be installed "
        f"on this host: {library.install}."
    )


def dependencies(text: str) -> tuple[str, ...]:
    """The files named in a make rule as `-MD` writes it (`a.so: b.cpp \\` …), in order."""
    _, _, files = text.replace("\\\r\n", " ").replace("\\\n", " ").partition(": ")
    names = re.findall(r"(?:\\.|[^\s\\])+", files)
    return tuple(dict.fromkeys(re.sub(r"\\(.)", r"\1", n).replace("$$", "$") for n in names))


def _messages(lines: Iterable[str], source: str) -> Iterator[Diagnostic]:
    for line in lines:
        if (m := _GXX.match(line) or _EDG.match(line)) is not None:
            yield _diagnostic(m["severity"], shown_name(m["file"]), int(m["line"]), m["text"])
        elif (m := _TOOL.match(line)) is not None:
            yield _diagnostic(m["severity"], source, None, f"{m['file']}: {m['text']}")
        elif (m := _AS.match(line)) is not None:
            yield _diagnostic(m["severity"], source, None, f"assembler: {m['text']}")


def _link_errors(lines: Iterable[str], source: str) -> Iterator[Diagnostic]:
    for line in lines:
        for symbol in unresolved(line):
            yield _diagnostic("error", source, None, _undefined(symbol))
        if (m := _MULTIPLE.search(line)) is not None:
            yield _diagnostic(
                "error", source, None, f"{m['symbol']} is defined twice; fixed files define it, or two of yours."
            )


def _undefined(symbol: str) -> str:
    """What to do about a symbol that is defined nowhere."""
    if symbol == "hiera_run":
        return (
            'hiera_run is defined nowhere. Define it with the signature of contract.h, as extern "C" and outside every '
            "namespace."
        )
    if re.fullmatch(r"cu[A-Z]\w+", symbol):
        return f"{symbol} belongs to the driver API, which is not linked: get it by cudaGetDriverEntryPoint."
    return f"{symbol} is used but defined nowhere, nor in a library that this space links."


def _diagnostic(severity: str, file: str, line: int | None, text: str) -> Diagnostic:
    word = (
        severity.lower()
        .replace("fatal error", "error")
        .replace("catastrophic error", "error")
        .replace("fatal", "error")
    )
    return Diagnostic.model_validate({"severity": word, "file": file, "line": line, "text": scrub(text).strip()})
