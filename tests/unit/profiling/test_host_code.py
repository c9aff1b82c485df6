"""What the binutils print of a candidate on cpu: functions, samples at the instruction that was waited for, lines."""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.sandbox.compilers.gxx import FLAGS
from hiera_mcp.sandbox.profiling.host_code import MOST_INSTRUCTIONS, code, places

HEADER = """
template <class T> inline T scaled(T x) { return x / (x * x + T(3)); }
"""
SOURCE = """
#include <algorithm>
#include <cmath>
#include "contract.h"
static inline float helped(float x) {
    return scaled(x) + 1.0f;
}
extern "C" int hiera_run(float* x, float* y, long n) {
    for (long i = 0; i < n; ++i)
        x[i] = std::sqrt(helped(x[i]));
    std::sort(x, x + n);
    #pragma omp parallel for
    for (long i = 0; i < n; ++i)
        y[i] = std::sqrt(x[i]);
    return 0;
}
"""
LISTING = """
a.so:     file format elf64-x86-64

0000000000001000 <f(int)>:
    1000:\tvdivss %xmm1,%xmm0,%xmm0
    1004:\tdec    %edx
    1006:\tjne    1000 <f(int)>
    1008:\tret
    1009:\tnopl   0x0(%rax)

0000000000001010 <g>:
    1010:\tendbr64
    1014:\tret
"""
BLOCK = "1008:\tret", "1008:\tjmp    1000 <f(int)>"


@dataclass(frozen=True)
class Built:
    """What the binutils say of the source above."""

    listing: str
    addresses: str
    text: str


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("code")
    (folder / "contract.h").write_text(HEADER)
    (folder / "cpu_source.cpp").write_text(SOURCE)

    def said(*argv: str) -> str:
        return subprocess.run(argv, cwd=folder, check=True, capture_output=True, text=True).stdout

    said("g++", *FLAGS, "-ffast-math", "cpu_source.cpp", "-o", "case0.so")
    listing = said("objdump", "-d", "-C", "--no-show-raw-insn", "case0.so")
    found = re.findall(r"^ +([0-9a-f]+):\t", listing, re.MULTILINE)
    return Built(listing, "\n".join(found), said("addr2line", "-a", "-f", "-i", "-e", "case0.so", *found))


def hits_everywhere(built: Built) -> dict[int, int]:
    return {int(address, 16): 1 for address in built.addresses.split()}


def test_the_code_of_a_function_comes_whole(built: Built) -> None:
    whole = code(built.listing, hits_everywhere(built))
    one = next(c for c in whole if c.function == "hiera_run" and c.samples)
    part = code(built.listing, {one.address: 5})
    assert sum(c.samples for c in part) == 5
    assert {c.function for c in part} == {"hiera_run"}
    assert [c.address for c in part] == [c.address for c in whole if c.function == "hiera_run"]


def test_code_of_headers_belongs_to_the_line_that_called_it(built: Built) -> None:
    found = places(built.text, {"cpu_source.cpp"})
    assert {name for name, _ in found.values()} == {"cpu_source.cpp"}
    roots = [c for c in code(built.listing, hits_everywhere(built)) if "sqrt" in c.text and c.address in found]
    lines = SOURCE.splitlines()
    assert roots and all("std::sqrt" in lines[found[c.address][1] - 1] for c in roots)


def test_a_header_of_the_candidates_own_is_named(built: Built) -> None:
    names = {name for name, _ in places(built.text, {"cpu_source.cpp", "contract.h"}).values()}
    assert names == {"cpu_source.cpp", "contract.h"}


def test_what_the_compiler_and_the_library_added_has_no_line(built: Built) -> None:
    found = places(built.text, {"cpu_source.cpp"})
    added = [c for c in code(built.listing, hits_everywhere(built)) if c.function == "register_tm_clones"]
    assert added and not any(c.address in found for c in added)


@pytest.mark.parametrize(
    ("listing", "hits", "samples"),
    [
        (LISTING, {0x1004: 7}, {0x1000: 7}),  # the division before it
        (LISTING, {0x1000: 7}, {0x1000: 7}),  # a jump's target: whence it came is not known
        (LISTING, {0x1006: 2, 0x1008: 1}, {0x1004: 2, 0x1006: 1}),
        (LISTING, {0x1009: 7}, {0x1009: 7}),  # nothing falls through a return
        (LISTING, {0x1014: 7}, {0x1010: 7}),
        (LISTING.replace(*BLOCK), {0x1009: 7}, {0x1009: 7}),
        (LISTING.replace("x86-64", "littleaarch64"), {0x1004: 7}, {0x1004: 7}),
    ],
)
def test_a_sample_counts_for_the_instruction_that_was_waited_for(
    listing: str, hits: Mapping[int, int], samples: Mapping[int, int]
) -> None:
    assert {c.address: c.samples for c in code(listing, hits) if c.samples} == samples


@given(st.dictionaries(st.sampled_from([0x1000, 0x1004, 0x1006, 0x1008, 0x1009, 0x1010, 0x1014]), st.integers(0, 99)))
def test_no_sample_is_lost_or_made(hits: dict[int, int]) -> None:
    found = code(LISTING, hits)
    assert sum(c.samples for c in found) == sum(hits.values())
    by_function = [sum(c.samples for c in found if c.function == f) for f in dict.fromkeys(c.function for c in found)]
    assert by_function == sorted(by_function, reverse=True)


def test_of_much_code_only_so_much_is_kept() -> None:
    rows = "\n".join(f"    {n:x}:\tnop" for n in range(MOST_INSTRUCTIONS + 10))
    assert len(code(f"0000 <f>:\n{rows}", {5: 1})) == MOST_INSTRUCTIONS


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_is_read_without_an_error(listing: str, text: str) -> None:
    assert code(f"1000 <f>:\n 1000:\t{listing}", {0x1000: 1})[0].samples == 1
    assert set(places(f"0x1000\n{text}", {"a.cpp"})) <= {0x1000}


@given(st.lists(st.tuples(st.sampled_from(["a.cpp", "b.h", "/usr/include/c++/12/a.cpp", "??"]), st.integers(0, 500))))
def test_the_innermost_line_of_the_candidates_files_is_taken(frames: list[tuple[str, int]]) -> None:
    text = "0x10\n" + "\n".join(f"f\n/box/{n}:{k} (discriminator 2)".replace("/box//", "/") for n, k in frames)
    own = [(n, k) for n, k in frames if n in ("a.cpp", "b.h") and k]
    assert places(text, {"a.cpp", "b.h"}).get(0x10) == (own[0] if own else None)
