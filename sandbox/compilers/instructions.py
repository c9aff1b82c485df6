"""Instruction mix: which classes of instructions a binary holds, from its disassembly.

Each instruction is counted once: `wide_load` are loads of 128 bits and more per thread (CUDA) or of vector registers
(cpu), and are not in `load` again; `other` holds the rest, so that the sum is the number of instructions. Static
counts: a loop's body counts once. SASS: `cuobjdump -sass`; x86-64 and AArch64: `objdump -d`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

CLASSES = (
    *("fma", "tensor", "load", "wide_load", "store", "async_copy", "spill"),
    *("branch", "barrier", "atomic", "special", "other"),
)
"""async_copy: LDGSTS and TMA, global to shared memory; spill: LDL and STL, local memory."""

_SASS_LINE = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)(.*?);")
_SASS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("tensor", r"(HMMA|IMMA|DMMA|BMMA|QMMA|OMMA|HGMMA|IGMMA|QGMMA|BGMMA|UTC\w*MMA)\b"),
        ("fma", r"(FFMA2?|DFMA|HFMA2)\b"),
        ("async_copy", r"(LDGSTS|UTMALDG|UTMASTG|UTMAREDG|UBLKCP|UBLKRED|UTMACCTL)\b"),
        ("spill", r"(LDL|STL)\b"),
        ("wide_load", r"(LDG|LDS|LD)\b.*\.(128|256)\b|LDSM\b.*\.4\b"),
        ("load", r"(LDG|LDS|LD|LDSM)\b"),
        ("store", r"(STG|STS|ST|STSM|STAS)\b"),
        ("atomic", r"(ATOM|ATOMG|ATOMS|RED|REDG|REDUX|REDAS)\b"),
        ("barrier", r"(BAR|MEMBAR|DEPBAR|LDGDEPBAR|WARPSYNC|SYNCS|UCGABAR_\w+|WARPGROUP|FENCE|ERRBAR)\b"),
        ("branch", r"(BRA|BRX|BRXU|JMP|JMX|CALL|RET|BSSY|BSYNC|BREAK)\b"),
        ("special", r"MUFU\b"),
    )
)
_CONSTANT = re.compile(r"-?RZ\b.*-?RZ\b")
"""HFMA2 R1, -RZ, RZ, 1, 2 writes a constant; it is no arithmetic."""

_HOST_LINE = re.compile(
    r"^\s+[0-9a-f]+:\s+(?:(?:lock|rep[nz]*|bnd|notrack|data16|cs|ds|\{\w+\})\s+)*([a-z][\w.]*)(.*)$"
)
_PADDING = re.compile(r"nop|xchg\s+%ax,%ax|endbr64|bti\b")
_KERNEL_ENTRY = re.compile(r"^\s+[0-9a-f]+:\s+(syscall|sysenter|svc|int(?=\s+\$0x80))\b")
_LINKERS_SECTION = re.compile(r" \.(plt\S*|init|fini):$")
_LOCKED = re.compile(r":\s+lock\s")
_HOST: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("tensor", r"(tdp\w+|vdpbf16ps|vpdp\w+|[subf]?mmla|bfdot|[su]dot|fmopa)\b"),
        ("fma", r"(vfn?m(add|sub)\w*|fn?m(add|sub|la|ls))\b"),
        ("special", r"(v?(div|sqrt|rsqrt|rcp)\w*|f(div|sqrt)|fr(sqrt|ecp)\w*|vexp2\w+)\b"),
        ("barrier", r"([lms]fence|d[ms]b)\b"),
        ("atomic", r"(xchg|cmpxchg\w*|xadd|ld(add|clr|set)\w*|cas\w*|swp\w*)\b"),
        ("branch", r"(j\w+|call\w*|ret\w*|loop\w*|b(\.\w+|l|r|lr)?|cbn?z|tbn?z)\b"),
        ("store", r"((v?p?mov|vp?scatter|vcompress|vmask)\S*\s+\S.*,[^,]*\([^()]*\)(\{.*\})?\s*$|st[nlur]?[pr]?\w*\s)"),
        ("wide_load", r"(?!lea|prefetch|nop)\w+\s.*\([^()]*\).*,\s*%[yz]mm|ld[1-4p]\w*\s+(\{|q)"),
        ("load", r"(?!lea|prefetch|nop)\w+\s.*\([^()]*\)(\{\S*\})?,|ld\w+\s"),
    )
)


def sass_mix(text: str) -> dict[str, int]:
    """Classes of the instructions in the output of `cuobjdump -sass`; empty when there are none."""
    found = (m for line in text.splitlines() if (m := _SASS_LINE.match(line)) is not None)
    return _count(_sass_class(m[1], m[2]) for m in found if m[1] != "NOP")


def host_mix(text: str) -> dict[str, int]:
    """Classes of the instructions in the output of `objdump -d --no-show-raw-insn`, without the linker's own sections;
    empty when there are none."""
    return _count(name for line in _own_code(text) if (name := _host_class(line)) is not None)


def forbidden_instructions(text: str) -> tuple[str, ...]:
    """Instructions in the same output that enter the kernel directly, past every function whose name could be seen."""
    return tuple(dict.fromkeys(m[1] for line in text.splitlines() if (m := _KERNEL_ENTRY.match(line)) is not None))


def _own_code(text: str) -> Iterator[str]:
    skipped = False
    for line in text.splitlines():
        if line.startswith("Disassembly of section"):
            skipped = _LINKERS_SECTION.search(line) is not None
        elif not skipped:
            yield line


def _sass_class(opcode: str, operands: str) -> str:
    if opcode.startswith("HFMA2") and _CONSTANT.search(operands):
        return "other"
    return next((name for name, pattern in _SASS if pattern.match(opcode)), "other")


def _host_class(line: str) -> str | None:
    match = _HOST_LINE.match(line)
    if match is None or _PADDING.match(match[1] + match[2]):
        return None
    if _LOCKED.search(line):
        return "atomic"
    instruction = match[1] + match[2].partition("#")[0].rstrip()
    return next((name for name, pattern in _HOST if pattern.match(instruction)), "other")


def _count(names: Iterable[str]) -> dict[str, int]:
    counted = Counter(names)
    return {name: counted[name] for name in CLASSES} if counted else {}
