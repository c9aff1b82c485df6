"""A candidate on `cpu` is profiled by what one call of it costs the processor, and by where its threads are in further calls."""

import pytest
from workshops import Workshop

from hiera_mcp.model.profile import Profile
from hiera_mcp.model.space import Direction
from hiera_mcp.tools.profile_view import profile_view

# More than the 32 MiB up to which glibc keeps what is freed for the next call.
ALLOCATES = """
#include "contract.h"
#include <cstring>
#include <vector>
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {
    const size_t n = sizeof(float) * HIERA_N;
    std::vector<float> copy(HIERA_N);
    for (size_t i = 0; i < HIERA_N; ++i) copy[i] = in->x[i] > 0 ? in->x[i] : 0;
    std::memcpy(out->out, copy.data(), n);
    return 0;
}
"""
HOT = """
#include "contract.h"
#include <algorithm>
static inline float quotients(float x) {
    float s = x;
    for (int k = 0; k < 40; ++k)
        s = s / (1.0f + x * x) + 0.5f;
    return s;
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {
    #pragma omp parallel for
    for (int i = 0; i < 3072 * 3072; ++i) {
        const float x = in->x[i];
        out->out[i] = std::max(quotients(x) > 1e30f ? 0.0f : x, 0.0f);
    }
    return 0;
}
"""
MODEL_NEW = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x.sin().asin() * 0 + x)
"""
RELU = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.randn(3072, 3072)]
def get_init_inputs():
    return []
"""


def test_a_call_that_allocates_its_memory_each_time_is_seen(workshop: Workshop) -> None:
    code = ALLOCATES.replace("HIERA_N", str(3072 * 3072))
    profile: Profile = workshop.profile(workshop.contract(RELU), code)
    metrics = {m.name: m for m in profile.metrics}
    assert (metrics["threads_used"].value or 0) > 0
    assert (metrics["page_faults"].value or 0) >= 4
    reuse = next(d for d in profile.directions if d.direction is Direction.REUSE_PIPELINING)
    assert reuse.score >= 3 and "allocated anew" in " ".join(reuse.signs_for)
    assert profile.counters_status in ("read", "unsupported") and profile.counters
    assert "processors busy" in profile.summary


def test_the_line_that_costs_the_time_comes_first(workshop: Workshop) -> None:
    profile = sampled(workshop.profile(workshop.contract(RELU), HOT))
    first = profile.launches[0].lines[0]
    assert first.text == "s = s / (1.0f + x * x) + 0.5f;" and first.where == "cpu_source.cpp:7"
    assert first.share > 0.5 and "div" in first.instruction
    assert {line.file for line in profile.launches[0].lines if line.line} == {"cpu_source.cpp"}
    shown = profile_view(profile, "c_1")
    assert shown.lines[0].startswith("cpu_source.cpp:7 ") and "cpu_source.cpp:7" in shown.summary
    assert (set(shown.uris) >= {"listing"}, "stalls" in shown.uris, shown.launches) == (True, False, ())
    assert len(shown.model_dump_json()) / 3 < 2000  # tokens


def test_the_time_of_a_model_is_told_by_library_and_function(workshop: Workshop) -> None:
    profile = sampled(workshop.profile(workshop.contract(RELU), MODEL_NEW, python=True))
    lines = profile.launches[0].lines
    assert lines[0].where.startswith("lib") and any("torch" in line.file for line in lines)
    assert next(m.value for m in profile.metrics if m.name == "outside_pct") == 100.0


def sampled(profile: Profile) -> Profile:
    """Skips where the kernel refuses to sample; the reason is there then."""
    refused = next(m.reason for m in profile.metrics if m.name == "outside_pct")
    if refused:
        assert refused in profile.counters and not profile.launches
        pytest.skip(refused)
    return profile


def test_a_candidate_that_ends_while_it_is_counted_leaves_the_rest_of_its_profile(workshop: Workshop) -> None:
    code = "#include <cstdlib>\n" + ALLOCATES.replace("HIERA_N", "8").replace("return 0;", "std::abort();")
    profile = workshop.profile(workshop.contract(RELU), code)
    assert profile.counters_status == "failed" and "not read" in profile.counters
    assert any(m.origin == "static" for m in profile.metrics)
