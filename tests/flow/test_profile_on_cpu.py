"""A candidate on `cpu` is profiled by what one call of it costs the processor."""

from workshops import Workshop

from hiera_mcp.model.profile import Profile
from hiera_mcp.model.space import Direction

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


def test_a_candidate_that_ends_while_it_is_counted_leaves_the_rest_of_its_profile(workshop: Workshop) -> None:
    code = "#include <cstdlib>\n" + ALLOCATES.replace("HIERA_N", "8").replace("return 0;", "std::abort();")
    profile = workshop.profile(workshop.contract(RELU), code)
    assert profile.counters_status == "failed" and "not read" in profile.counters
    assert any(m.origin == "static" for m in profile.metrics)
