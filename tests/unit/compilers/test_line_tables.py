"""Line tables are for the reader of a profile: what is timed is the same machine code as without them."""

import subprocess
from pathlib import Path

import pytest

from hiera_mcp.sandbox.compilers.gxx import FLAGS

MATMUL = """
#include <algorithm>
#include <cmath>
#include <vector>
template <int B> static void block(const float* a, const float* b, float* c, int n) {
    for (int i = 0; i < B; ++i)
        for (int k = 0; k < n; ++k)
            for (int j = 0; j < B; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
}
extern "C" int hiera_run(const float* a, const float* b, float* c, int n) {
    #pragma omp parallel for collapse(2) schedule(dynamic)
    for (int i = 0; i < n; i += 64)
        for (int j = 0; j < n; j += 64) block<64>(a + i * n, b + j, c + i * n + j, n);
    std::vector<float> sums(n);
    #pragma omp parallel for simd
    for (int i = 0; i < n; ++i) sums[i] = std::exp(c[i]) + std::fmax(a[i], b[i]);
    std::sort(sums.begin(), sums.end());
    std::copy(sums.begin(), sums.end(), c);
    return 0;
}
"""
THROWS = """
#include <stdexcept>
#include <string>
#include <unordered_map>
extern "C" int hiera_run(const char* text, int n) {
    std::unordered_map<std::string, int> counts;
    try {
        for (int i = 0; i < n; ++i) counts.at(std::string(text, i % 7)) += i;
    } catch (const std::out_of_range&) { return 1; }
    return static_cast<int>(counts.size());
}
"""


@pytest.mark.parametrize("source", [MATMUL, THROWS])
def test_the_machine_code_is_the_same_with_line_tables(source: str, tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text(source)
    assert "-g1" in FLAGS
    plain = tuple(flag for flag in FLAGS if flag != "-g1")
    shown: list[bytes] = []
    for flags in (FLAGS, plain):
        subprocess.run(["g++", *flags, "a.cpp", "-o", "a.so"], cwd=tmp_path, check=True)
        sections = [f"--section={name}" for name in (".text", ".rodata", ".data", ".init_array")]
        asked = ["objdump", "-d", "-s", *sections, "a.so"]
        shown.append(subprocess.run(asked, cwd=tmp_path, check=True, capture_output=True).stdout)
    assert shown[0] == shown[1]
