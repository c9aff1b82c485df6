"""Honest CUDA candidates must pass, exploits and faults must not, and after each fault the next candidate passes.

They are the files of tests/honest/cuda and tests/exploits/cuda_*. All are compiled at the beginning, many at a time; then
those of one contract are judged one after another, so that its judge stays warm. With HIERA_INTEGRITY_OUT=FILE the outcomes
are written there as JSON.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from candidate_files import CandidateFile, candidate_files
from workshops import LIMITS, Workshop

from hiera_mcp.model.evaluation import Evaluation
from hiera_mcp.sandbox.devices import gpus

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not gpus(), reason="needs an NVIDIA GPU"),
    pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc"),
]

TESTS = Path(__file__).parents[1]
HONEST = TESTS / "honest" / "cuda"
FAULTS = TESTS / "exploits" / "cuda_faults"
EXPLOITS = sorted(path for path in (TESTS / "exploits").glob("cuda_*") if path != FAULTS)
NEXT = "under_three_microseconds"
"""The honest candidate that is judged after each fault, on the same task."""
GPU_LIMITS = LIMITS.model_copy(update={"total_s": 120.0})
FAULT_LIMITS = LIMITS.model_copy(update={"call_s": 3.0})


class Ledger:
    """What became of each candidate, for the summary."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._device: dict[str, Any] = {}

    def add(self, kind: str, candidate: CandidateFile, result: Evaluation) -> None:
        self._device |= result.device.model_dump(mode="json", exclude_none=True) if result.device else {}
        timing = result.timing
        times = {"seconds": timing.candidate.median, "speedup": timing.speedup.median} if timing else {}
        self._rows.append(
            {"kind": kind, "name": candidate.name, **candidate.facts, "became": result.status, "reason": result.reason}
            | times
        )

    def write(self, path: Path) -> None:
        command = "HIERA_INTEGRITY_OUT=… pytest -m gpu tests/gpu/test_candidates_on_gpu.py"
        text = json.dumps({"command": command, "device": self._device, "candidates": self._rows}, indent=1)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


def of(folders: list[Path], *suffixes: str) -> list[CandidateFile]:
    target = gpus()[0].target if gpus() else "cuda:sm_80"
    return [c for c in candidate_files(folders, *suffixes) if c.runs_on(target)]


ALL = sorted(
    [
        *(("honest", c) for c in of([HONEST], ".cu", ".py")),
        *(("exploit", c) for c in of(EXPLOITS, ".cu")),
        *(("fault", c) for c in of([FAULTS], ".cu")),
    ],
    key=lambda pair: (pair[1].contract, pair[0], pair[1].name),
)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """A workshop for this GPU, with all candidates compiled."""
    with start_blocking_portal("asyncio") as portal:
        made = Workshop(portal, tmp_path_factory.mktemp("compiled"), gpus()[0].target)
        try:
            made.check([(made.task(*c.contract), c.code, c.space) for _, c in ALL if not c.python])
            yield made
        finally:
            made.close()


@pytest.fixture(scope="module")
def ledger() -> Iterator[Ledger]:
    made = Ledger()
    yield made
    if out := os.environ.get("HIERA_INTEGRITY_OUT"):
        made.write(Path(out))


@pytest.mark.parametrize(("kind", "candidate"), ALL, ids=lambda v: v if isinstance(v, str) else v.name)
def test_the_candidate_ends_as_it_must(workshop: Workshop, ledger: Ledger, kind: str, candidate: CandidateFile) -> None:
    contract = workshop.task(*candidate.contract)
    limits = FAULT_LIMITS if kind == "fault" else GPU_LIMITS
    result = workshop.evaluate(contract, candidate.code, candidate.python, candidate.space, limits)
    ledger.add(kind, candidate, result)
    assert result.status in candidate.statuses, result.reason
    assert candidate.is_seen_in(result.reason), result.reason
    assert (result.timing is not None) == (kind == "honest")
    if kind == "fault":
        honest = workshop.evaluate(contract, (HONEST / f"{NEXT}.cu").read_text())
        assert honest.status == "passed", honest.reason


IDLE_WHEN_CAPTURED = """
#include "contract.h"
__global__ void twice(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
__global__ void nothing() {}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    cudaStreamCaptureStatus captured;
    cudaStreamIsCapturing(stream, &captured);
    if (captured) nothing<<<1, 1, 0, stream>>>();
    else twice<<<1, HIERA_NUMEL_out, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
"""


def test_a_call_that_skips_its_work_when_it_is_captured_gains_nothing(workshop: Workshop) -> None:
    result = workshop.evaluate(workshop.task("tiny"), IDLE_WHEN_CAPTURED)
    assert result.timing is not None and result.timing.short_call is not None, result.reason
    assert result.timing.short_call.method == "batches"


RELU = """
#include "contract.h"
__global__ void relu(const float4* x, float4* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = x[i];
    y[i] = {fmaxf(v.x, 0.f), fmaxf(v.y, 0.f), fmaxf(v.z, 0.f), fmaxf(v.w, 0.f)};
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    @before
    relu<<<HIERA_NUMEL_out / 4 / 256, 256, 0, stream>>>((const float4*)in->x, (float4*)out->out);
    return cudaGetLastError();
}
"""
KEPT_IN_L2 = """
    cudaStreamAttrValue window = {};
    window.accessPolicyWindow.base_ptr = (void*)in->x;
    window.accessPolicyWindow.num_bytes = sizeof(float) * HIERA_NUMEL_x;
    window.accessPolicyWindow.hitRatio = 1.f;
    window.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    window.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    static const cudaError_t aside = cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 24 << 20);
    if (aside) return aside;
    cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &window);
"""


def test_inputs_that_are_to_persist_in_l2_are_cold_all_the_same(workshop: Workshop) -> None:
    contract = workshop.task("large")
    plain = workshop.evaluate(contract, RELU.replace("@before", ""))
    kept = workshop.evaluate(contract, RELU.replace("@before", KEPT_IN_L2))
    assert plain.timing is not None and kept.timing is not None, f"{plain.reason}; {kept.reason}"
    assert kept.timing.candidate.median > 0.9 * plain.timing.candidate.median
