"""Machine code of a candidate on `cpu`, and the source lines that it was made from, as the binutils print them. Pure.

Of code that was inlined the line is the innermost one in the candidate's own files: what came from a header of the system or
from contract.h belongs to the line that called it. Source: objdump(1), addr2line(1).
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath

MOST_INSTRUCTIONS = 20_000
_FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]{1,16}):\t(.*)$")
_ADDRESS = re.compile(r"^0x[0-9a-f]{1,16}$")
_PLACE = re.compile(r"^(.*):(\d{1,9})(?: \(discriminator \d+\))?$")

_X86 = "file format elf64-x86-64"
_JUMP = re.compile(r"^(?:bnd |notrack )?j\w+ ([0-9a-f]{1,16})\b")
_LEAVES = re.compile(r"^(?:bnd |notrack |repz? )?(?:jmp|ret|ud2|hlt)")

Place = tuple[str, int]
"""A file of the candidate's, and the line."""


@dataclass(frozen=True)
class Code:
    """One machine instruction."""

    address: int
    text: str
    function: str
    samples: int = 0


def code(listing: str, hits: Mapping[int, int]) -> tuple[Code, ...]:
    """The functions in which something was sampled, whole, those with the most samples first; at most `MOST_INSTRUCTIONS`.

    Args:
        listing: output of `objdump -d --no-show-raw-insn`.
        hits: address → samples.
    """
    is_x86 = _X86 in listing
    functions = [_hit(found, hits, is_x86) for found in _functions(listing)]
    functions.sort(key=lambda found: -_samples(found))
    return tuple(c for found in functions if _samples(found) for c in found)[:MOST_INSTRUCTIONS]


def _samples(found: Sequence[Code]) -> int:
    return sum(c.samples for c in found)


def _functions(listing: str) -> Iterator[list[Code]]:
    name, found = "", list[Code]()
    for line in listing.splitlines():
        if (head := _FUNCTION.match(line)) is not None:
            yield found
            name, found = head[1], []
        elif (row := _INSTRUCTION.match(line)) is not None:
            found.append(Code(int(row[1], 16), " ".join(row[2].split()), name))
    yield found


def _hit(function: list[Code], hits: Mapping[int, int], is_x86: bool) -> list[Code]:
    """The function with its samples. x86 processors take an interrupt when an instruction retires, and the address is that of
    the next one: what was waited for is the one before, where it is known which one that is."""
    found = [hits.get(c.address, 0) for c in function]
    if is_x86 and any(found):
        targets = {int(jump[1], 16) for c in function if (jump := _JUMP.match(c.text)) is not None}
        for n in range(1, len(function)):
            if function[n].address not in targets and not _LEAVES.match(function[n - 1].text):
                found[n - 1], found[n] = found[n - 1] + found[n], 0
    return [replace(c, samples=n) for c, n in zip(function, found, strict=True)]


def places(text: str, own: Container[str]) -> dict[int, Place]:
    """Address → place, where it has one.

    Args:
        text: output of `addr2line -a -f -i`: by address two lines for each frame, the innermost first.
        own: names of the candidate's files.
    """
    lines = text.splitlines()
    starts = [n for n, line in enumerate(lines) if _ADDRESS.match(line)]
    found: dict[int, Place] = {}
    for start, end in pairwise([*starts, len(lines)]):
        frames = (_place(line) for line in lines[start + 2 : end : 2])
        place = next((f for f in frames if f is not None and f[0] in own), None)
        if place is not None:
            found[int(lines[start], 16)] = place
    return found


def _place(text: str) -> Place | None:
    found = _PLACE.match(text)
    if found is None or not int(found[2]) or found[1].startswith("/usr/"):
        return None
    return PurePosixPath(found[1]).name, int(found[2])
