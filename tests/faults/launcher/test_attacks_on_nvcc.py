"""nvcc is a chain of compilers, each of which reads what the source names: the box is what keeps the host's files from it."""

import asyncio
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.model.space import Space
from hiera_mcp.model.work import CheckRequest, Limits
from hiera_mcp.sandbox.compilers.build import Built, build
from hiera_mcp.sandbox.isolation.bubblewrap import Bubblewrap

pytestmark = [
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc"),
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]

KERNEL = """
#include "contract.h"
{before}
__global__ void relu(const float *x, float *out) {{
    {device}
    out[threadIdx.x] = x[threadIdx.x];
}}
extern "C" int hiera_run(const hiera_inputs *in, const hiera_params *, const hiera_outputs *out, void *, cudaStream_t s) {{
    relu<<<1, 256, 0, s>>>(in->x, out->out);
    return cudaGetLastError();
}}
"""
FLOOD = '#warning "flood"\n#if __INCLUDE_LEVEL__ < 40\n' + '#include "cuda_source.cu"\n' * 2 + "#endif\n"
DEPTH = "template <int N> struct Deeper { static const int v = Deeper<N + 1>::v; };\nint v = Deeper<0>::v;"
ATTACKS = {
    "includes a file": ("compile_error", "No such file", '#include "SECRET"', ""),
    "assembles a file on the host": ("compile_error", "not found|No such file", 'asm(".incbin \\"SECRET\\"");', ""),
    "assembles a file on the device": ("compile_error", "", "", 'asm volatile(".incbin \\"SECRET\\";");'),
    "reads a device without end": ("resource_limit", "memory", '#include "/dev/zero"', ""),
    "floods the log": ("resource_limit", "1024 KiB", FLOOD, ""),
    "nests templates without end": ("compile_error", "depth|recursive|instantiation", DEPTH, ""),
}


async def silent(message: str, fraction: float | None) -> None:
    pass


@pytest.mark.timeout(240)
async def test_each_attack_ends_in_its_status_and_no_secret_is_in_the_log(tmp_path: Path, relu: Any) -> None:
    secret = tmp_path / "answers"
    secret.write_text("the expected outputs")
    contract = relu.model_copy(update={"target": "cuda:sm_90a"})

    async def built(name: str) -> Built:
        _, _, before, device = ATTACKS[name]
        text = FLOOD if before is FLOOD else KERNEL.format(before=before, device=device)
        request = CheckRequest(
            contract=contract,
            files=render_files(contract),
            space=Space.CUDA,
            sources={"cuda_source.cu": text.replace("SECRET", str(secret))},
            limits=Limits(compile_s=120, memory_bytes=1 << 30),
        )
        return await build(request, Bubblewrap(), tmp_path / "cache", silent)

    found = dict(zip(ATTACKS, await asyncio.gather(*map(built, ATTACKS)), strict=True))
    for name, (failure, seen, _, _) in ATTACKS.items():
        result = found[name]
        assert result.failure == failure, (name, result.reason)
        assert re.search(seen, result.reason), (name, result.reason)
        assert "expected outputs" not in result.reason + result.build.log
    assert list((tmp_path / "cache" / "scratch").iterdir()) == []
