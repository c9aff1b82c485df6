"""Timing on a GPU: conditions beside each time, calls under 10 us, a flush of the whole L2, two candidates in one session."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from workshops import Workshop

from hiera_mcp.model.contract import Contract
from hiera_mcp.model.evaluation import Evaluation, Timing
from hiera_mcp.planning.parents import in_one_session
from hiera_mcp.sandbox.devices import gpus

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(120),
    pytest.mark.skipif(not gpus(), reason="needs an NVIDIA GPU"),
    pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc"),
]

TASK = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn({elements})]

def get_init_inputs():
    return []
"""
SHORT, LONG = 1 << 14, 1 << 22


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with start_blocking_portal("asyncio") as portal:
        made = Workshop(portal, tmp_path_factory.mktemp("compiled"), gpus()[0].target)
        yield made
        made.close()


def relu(contract: Contract, steps: int = 1, before: str = "", after: str = "") -> str:
    """v → (x + v) / 2 comes to rest at x long before the last of many steps: more of them change the time alone."""
    case = contract.cases[0]
    start = "x[i]" if steps < 100 else "0.f"
    return f"""
#include "contract.h"
#include <cstdlib>
__global__ void chain(const float* x, float* y) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float half = 0.5f * x[i], v = {start};
    #pragma unroll 8
    for (int k = 0; k < {steps}; k++) v = fmaf(0.5f, v, half);
    y[i] = fmaxf(v, 0.f);
}}
int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {{
    {before}
    chain<<<{case.inputs[0].shape[0]} / 256, 256, 0, stream>>>(in->{case.inputs[0].name}, out->{case.outputs[0].name});
    {after}
    return (int)cudaGetLastError();
}}
"""


def timed(result: Evaluation) -> Timing:
    assert result.status == "passed", result.reason
    assert result.timing is not None
    return result.timing


@pytest.fixture(scope="module")
def short(workshop: Workshop) -> Contract:
    return workshop.contract(TASK.format(elements=SHORT))


@pytest.fixture(scope="module")
def long(workshop: Workshop) -> Contract:
    return workshop.contract(TASK.format(elements=LONG))


def test_clocks_temperature_and_power_stand_beside_the_time(workshop: Workshop, long: Contract) -> None:
    result = workshop.evaluate(long, relu(long, 400))
    found = timed(result)
    clocks = found.device_clocks
    for when in ("before", "after", "lowest", "highest"):
        assert 200 <= clocks[f"sm_mhz_{when}"] <= 4000
        assert 200 <= clocks[f"memory_mhz_{when}"] <= 20_000
        assert 10 <= clocks[f"temperature_c_{when}"] <= 110
        assert 10 <= clocks[f"power_w_{when}"] <= 2000
    assert found.unmeasured == ()
    assert " MHz, " in result.reason
    assert found.short_call is None


def test_what_two_events_read_around_nothing_is_small_and_told(workshop: Workshop, long: Contract) -> None:
    found = timed(workshop.evaluate(long, relu(long, 400)))
    assert 0 < found.clock_overhead < 5e-6


def test_a_short_call_is_timed_by_graph_replay_with_its_launch_apart(workshop: Workshop, short: Contract) -> None:
    result = workshop.evaluate(short, relu(short))
    found = timed(result)
    assert found.unmeasured == ()
    assert "by graph replay" in result.reason and "launching adds" in result.reason
    assert found.short_call is not None and found.short_call.method == "graph_replay"
    device, launch = found.short_call.device, found.short_call.launch
    assert device is not None and 0.3e-6 < device < 5e-6
    assert launch is not None and launch >= 0
    assert found.short_call.launched < 20e-6


@pytest.mark.parametrize(
    "before",
    [
        "if (cudaStreamQuery(stream) == cudaErrorStreamCaptureUnsupported) return cudaErrorStreamCaptureUnsupported;",
        "cudaStreamCaptureStatus s; cudaStreamIsCapturing(stream, &s); if (s != cudaStreamCaptureStatusNone) abort();",
    ],
    ids=["asks its stream", "aborts when captured"],
)
def test_a_short_call_that_cannot_be_captured_passes_and_says_so(
    workshop: Workshop, short: Contract, before: str
) -> None:
    result = workshop.evaluate(short, relu(short, before=before))
    found = timed(result)
    assert "not measured: device time by graph replay" in result.reason
    assert found.short_call is not None and found.short_call.method == "batches"
    assert found.short_call.device is None and found.short_call.launched > 0
    assert len(found.unmeasured) == 1 and "graph replay" in found.unmeasured[0]


def test_the_flush_is_at_least_twice_the_l2_that_the_driver_reports() -> None:
    from hiera_mcp.sandbox.child.cudart import cuda_runtime
    from hiera_mcp.sandbox.child.stopwatch import CudaStopwatch

    runtime: Any = cuda_runtime()
    l2 = runtime.deviceGetAttribute(runtime.cudaDevAttrL2CacheSize, 0)
    watch = CudaStopwatch("cuda:0")
    assert l2 > 0 and watch.flush_bytes >= 2 * l2
    assert watch.cache == "cold"


def test_twins_are_not_told_and_a_tenth_more_work_is(workshop: Workshop, long: Contract) -> None:
    steps = 400
    same = in_one_session(workshop.compare(long, relu(long, steps), relu(long, steps) + "// its twin\n"))
    more = in_one_session(workshop.compare(long, relu(long, steps), relu(long, steps * 11 // 10)))
    assert same is not None and same.verdict == "no_difference", same
    assert more is not None and more.verdict == "faster", more
    assert 1.05 < more.ratio.median < 1.12
    assert " MHz" in more.basis
