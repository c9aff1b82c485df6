"""What lies at sampled addresses: an offset in the candidate's own library, or a function of another one.

Source: proc(5) for maps; dladdr(3), which knows exported functions alone, and says nothing where an address lies in none.
"""

import bisect
import contextlib
import ctypes
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MOST_OWN, MOST_OTHERS, MOST_LOOKUPS = 20_000, 200, 400
"""Instructions, functions of others, and addresses that are asked for their function; of what was sampled most."""
NAME_CHARACTERS = 120
_libc = ctypes.CDLL(None)


class Objects:
    """What is mapped where, from the text of /proc/PID/maps. Lines that are none of it are left out."""

    def __init__(self, maps: str) -> None:
        self._rows = sorted(row for line in maps.splitlines() if (row := _row(line)) is not None)
        self._starts = [start for start, _, _ in self._rows]
        self._bases: dict[str, int] = {}
        for start, _, path in self._rows:
            self._bases.setdefault(path, start)

    def at(self, address: int) -> tuple[str, int]:
        """Path of what is mapped there, empty where nothing has a name, and the offset from its lowest mapping."""
        n = bisect.bisect_right(self._starts, address) - 1
        if n < 0 or address >= self._rows[n][1] or not self._rows[n][2]:
            return "", 0
        return self._rows[n][2], address - self._bases[self._rows[n][2]]


def _row(line: str) -> tuple[int, int, str] | None:
    cells = line.split(maxsplit=5)
    first, dash, last = cells[0].partition("-") if cells else ("", "", "")
    try:
        return (int(first, 16), int(last, 16), cells[5] if len(cells) > 5 else "") if dash else None
    except ValueError:
        return None


def placed(addresses: Mapping[int, int], own: Path) -> dict[str, list[Any]]:
    """Samples by place: `own` and `others` of `HostSamples` as plain data.

    Args:
        addresses: address in this process → samples.
        own: the candidate's library.
    """
    objects, ours = Objects(Path("/proc/self/maps").read_text()), os.path.realpath(own)
    inside: Counter[int] = Counter()
    outside: Counter[tuple[str, int]] = Counter()
    for address, samples in addresses.items():
        path, offset = objects.at(address)
        if path == ours:
            inside[offset] += samples
        else:
            outside[os.path.basename(path), address] += samples
    return {
        "own": [[offset, n] for offset, n in inside.most_common(MOST_OWN)],
        "others": [
            {"library": o, "function": f, "samples": n} for (o, f), n in _functions(outside).most_common(MOST_OTHERS)
        ],
    }


def _functions(outside: Counter[tuple[str, int]]) -> Counter[tuple[str, str]]:
    """(library, function) → samples."""
    found: Counter[tuple[str, str]] = Counter()
    for n, ((library, address), samples) in enumerate(outside.most_common()):
        name = _function(address) if n < MOST_LOOKUPS else ""
        found[library[:NAME_CHARACTERS], name[:NAME_CHARACTERS]] += samples
    return found


class _Place(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def _function(address: int) -> str:
    """The exported function at an address, as C++ writes it; empty when there is none."""
    found = _Place()
    if not _libc.dladdr(ctypes.c_void_p(address), ctypes.byref(found)) or not found.name:
        return ""
    return _readable(found.name).decode(errors="replace")


def _readable(name: bytes) -> bytes:
    """Without the compiler's mangling; a name that has none stays as it is. What is returned is never freed: few names."""
    with contextlib.suppress(OSError, AttributeError):
        demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
        demangle.restype = ctypes.c_char_p
        return demangle(name, None, None, None) or name
    return name
