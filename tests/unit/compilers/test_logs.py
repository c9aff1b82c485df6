"""Compiler logs, dependency files and disassemblies, read."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.sandbox.compilers import diagnostics
from hiera_mcp.sandbox.compilers.instructions import CLASSES, host_mix, sass_mix
from hiera_mcp.sandbox.compilers.nvcc import code_flags, kernels

PTXAS = """ptxas info    : 8 bytes gmem
ptxas info    : Compiling entry function '_Z1aPf' for 'sm_80'
ptxas info    : Function properties for _Z1aPf
    40 bytes stack frame, 44 bytes spill stores, 48 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 1024 bytes smem, 368 bytes cmem[0]
ptxas info    : Function properties for _Z6helperf
    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function '_Z1bPf' for 'sm_80'
ptxas info    : Function properties for _Z1bPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers, 368 bytes cmem[0]
"""


def test_ptxas_is_read_kernel_by_kernel() -> None:
    first, second = kernels(PTXAS)
    assert first.model_dump() == {
        "kernel": "_Z1aPf",
        "registers": 255,
        "shared_bytes": 1024,
        "spill_store_bytes": 44,
        "spill_load_bytes": 48,
        "stack_bytes": 40,
    }
    assert (second.kernel, second.registers, second.shared_bytes, second.stack_bytes) == ("_Z1bPf", 10, 0, 0)


@pytest.mark.parametrize(
    ("line", "file", "number", "severity"),
    [
        ("/box/a.cpp:3:10: fatal error: x.h: No such file or directory", "a.cpp", 3, "error"),
        ("/usr/include/c++/12/bits/stl_vector.h:100:5: error: bad", "<c++/12/bits/stl_vector.h>", 100, "error"),
        ('a.cu(12): error: expected a ";"', "a.cu", 12, "error"),
        ('a.cu(2): warning #177-D: variable "a" was declared but never referenced', "a.cu", 2, "warning"),
        ("ptxas error   : Entry function '_Z1k' uses too much shared data", "src.cu", None, "error"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_70'", "src.cu", None, "error"),
        ("/tmp/ccX1.s:13: Error: file not found: answers", "src.cu", None, "error"),
        ("a.cpp:(.text+0x5): undefined reference to `foo(int)'", "src.cu", None, "error"),
        ("/usr/bin/ld: /tmp/b.o: multiple definition of `bar'; /tmp/a.o: first defined here", "src.cu", None, "error"),
    ],
)
def test_each_compilers_messages_are_understood(line: str, file: str, number: int | None, severity: str) -> None:
    (found,) = diagnostics.parse(line, "src.cu")
    assert (found.file, found.line, found.severity) == (file, number, severity)
    assert "/tmp" not in found.text and "/box" not in found.text


def test_errors_come_before_warnings_and_are_not_crowded_out() -> None:
    log = "".join(f"a.cpp:{n}:1: warning: w{n}\n" for n in range(1, 200)) + "a.cpp:500:1: error: the cause\n"
    found = diagnostics.parse(log, "a.cpp")
    assert found[0].text == "the cause" and len(found) == diagnostics.MOST_DIAGNOSTICS


@given(st.text(max_size=400), st.text(max_size=20))
def test_no_text_upsets_the_readers(log: str, source: str) -> None:
    diagnostics.parse(log, source)
    diagnostics.unresolved(log)
    diagnostics.missing_includes(log)
    diagnostics.exhausted(log)
    diagnostics.dependencies(log)
    kernels(log)
    assert set(host_mix(log)) | set(sass_mix(log)) <= set(CLASSES)


_NAME = st.text(string.ascii_letters + string.digits + "_+-", min_size=1, max_size=8)


@given(st.lists(st.builds("/".join, st.lists(_NAME, min_size=2, max_size=5)), min_size=1))
def test_no_absolute_path_survives_scrubbing(paths: list[str]) -> None:
    log = "\n".join(f"{p} at /{p}: in function, /box/{p} (/{p})" for p in paths)
    assert not any(f" /{p}" in diagnostics.scrub(log) for p in paths)


@given(st.lists(st.text(string.ascii_letters + " $#/._-+", min_size=1, max_size=12), min_size=1, unique=True))
def test_names_in_a_dependency_file_survive_its_escapes(names: list[str]) -> None:
    names = [n.strip() or "x" for n in names]
    escaped = [n.replace("$", "$$").replace(" ", "\\ ").replace("#", "\\#") for n in names]
    rule = "case0.so: " + " \\\n  ".join(escaped) + "\n"
    assert diagnostics.dependencies(rule) == tuple(dict.fromkeys(names))


@given(st.text(max_size=3000), st.integers(100, 1000))
def test_a_cut_log_keeps_both_ends_and_counts_what_it_lost(log: str, limit: int) -> None:
    shown = diagnostics.cut(log, limit)
    if len(log) <= limit:
        assert shown == log
    else:
        assert shown.startswith(log[:50]) and shown.endswith(log[-20:]) and len(shown) < limit + 60


def test_a_compiler_out_of_memory_is_told_from_a_candidate_that_says_so() -> None:
    assert diagnostics.exhausted("cc1plus: out of memory allocating 1 bytes") == "memory"
    assert diagnostics.exhausted("a.cpp:1:2: error: #error out of memory") is None


def test_sass_is_counted_by_class() -> None:
    lines = [
        "        /*0000*/                   MOV R1, c[0x0][0x28] ;       /* 0x00 */",
        "        /*0010*/              @!P0 LDG.E.128.SYS R2, [R2] ;     /* 0x00 */",
        "        /*0020*/                   LDG.E R2, [R2.64] ;",
        "        /*0030*/                   FFMA R1, R2, R3, R4 ;",
        "        /*0040*/                   HFMA2.MMA R4, -RZ, RZ, 0, 2.3e-07 ;",
        "        /*0050*/                   HMMA.16816.F32.BF16 R4, R8, R12, R4 ;",
        "        /*0060*/                   LDGSTS.E.BYPASS.128 [R5], [R6.64] ;",
        "        /*0070*/               @P1 BRA 0x40 ;",
        "        /*0080*/                   STL [R1], R4 ;",
        "        /*0090*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;",
        "        /*00a0*/                   MUFU.EX2 R3, R3 ;",
        "        /*00b0*/                   RED.E.ADD.F32 [R2.64], R5 ;",
        "        /*00c0*/                   STG.E [R2.64], R5 ;",
        "        /*00d0*/                   NOP;",
        "                                                                /* 0x000fe40000000f00 */",
    ]
    wanted = dict.fromkeys(CLASSES, 1) | {"other": 2}
    assert sass_mix("\n".join(lines)) == wanted


def test_x86_is_counted_by_class() -> None:
    lines = [
        "  1050:\tvmovups (%rdi,%rax,1),%zmm0",
        "  1051:\tvmovss (%rsi),%xmm1",
        "  1052:\tvfmadd132ps (%r8,%rax,1),%zmm2,%zmm0",
        "  1053:\tvmovups %zmm0,(%rdi,%rax,1)",
        "  1054:\tlea    0x4(%rdi),%rax",
        "  1055:\tjne    1050 <f+0x1>",
        "  1056:\tlock addl $0x2,(%rax)",
        "  1057:\tvsqrtss %xmm0,%xmm0,%xmm0",
        "  1058:\tmfence",
        "  1059:\txchg   %ax,%ax",
        "  105a:\tnopw   0x0(%rax,%rax,1)",
        "0000000000001050 <f>:",
    ]
    found = {name: count for name, count in host_mix("\n".join(lines)).items() if count}
    wanted = ("wide_load", "load", "fma", "store", "other", "branch", "atomic", "special", "barrier")
    assert found == dict.fromkeys(wanted, 1)


def test_ptx_is_added_only_where_another_gpu_could_use_it() -> None:
    assert code_flags("cuda:sm_80")[-1] == "arch=compute_80,code=compute_80"
    assert code_flags("cuda:sm_90a") == ("-gencode", "arch=compute_90a,code=sm_90a")
