"""Theoretical occupancy against NVIDIA's own calculator, cuda_occupancy.h, where a toolkit is installed."""

import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest

from hiera_mcp.errors import ToolchainError
from hiera_mcp.model.evaluation import KernelResources
from hiera_mcp.sandbox.compilers.nvcc import find
from hiera_mcp.sandbox.occupancy import limits_of, occupancy

ORACLE = """
#include <cstdio>
#include <cstring>
#include <cstdlib>
#define __device__
#define __host__
#include "cuda_occupancy.h"
int main(int n, char** a) {
    int major, minor, regs, shared, threads, per_sm, warps, blocks;
    while (std::scanf("%d %d %d %d %d %d %d %d", &major, &minor, &regs, &shared, &threads, &per_sm, &warps, &blocks) == 8) {
        cudaOccDeviceProp p; std::memset(&p, 0, sizeof p);
        p.computeMajor = major; p.computeMinor = minor; p.maxThreadsPerBlock = 1024;
        p.maxThreadsPerMultiprocessor = warps * 32; p.regsPerBlock = 65536; p.regsPerMultiprocessor = 65536;
        p.warpSize = 32; p.sharedMemPerBlock = 49152; p.sharedMemPerMultiprocessor = per_sm; p.numSms = 100;
        p.sharedMemPerBlockOptin = per_sm - 1024; p.reservedSharedMemPerBlock = 1024;
        cudaOccFuncAttributes f; std::memset(&f, 0, sizeof f);
        f.maxThreadsPerBlock = 1024; f.numRegs = regs; f.sharedSizeBytes = shared;
        f.partitionedGCConfig = PARTITIONED_GC_OFF; f.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        f.maxDynamicSharedSizeBytes = per_sm; f.numBlockBarriers = 1;
        cudaOccDeviceState s; s.cacheConfig = CACHE_PREFER_SHARED; s.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
        cudaOccResult r;
        auto e = cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &f, &s, threads, 0);
        std::printf("%d\\n", e == CUDA_OCC_SUCCESS ? r.activeBlocksPerMultiprocessor : -(int)e);
    }
}
"""


def _resident(target: str, registers: int, shared: int, threads: int) -> int:
    sm = limits_of(target)
    found = (
        occupancy(KernelResources(kernel="k", registers=registers, shared_bytes=shared), threads, sm) if sm else None
    )
    assert sm is not None and found is not None
    return round(found.percent / 100 * sm.warps / -(-threads // 32))


def test_it_agrees_with_nvidias_calculator(tmp_path: Path) -> None:
    try:
        toolkit = find("cuda:sm_80").toolkit
    except ToolchainError as e:
        pytest.skip(str(e))
    if toolkit is None or not (toolkit / "include" / "cuda_occupancy.h").is_file() or shutil.which("g++") is None:
        pytest.skip("cuda_occupancy.h or g++ is not installed")
    (tmp_path / "oracle.cpp").write_text(ORACLE)
    program = str(tmp_path / "oracle")
    include = str(toolkit / "include")
    subprocess.run(["g++", "-w", "-I", include, str(tmp_path / "oracle.cpp"), "-o", program], check=True)
    targets = {"cuda:sm_80": (8, 0), "cuda:sm_86": (8, 6), "cuda:sm_89": (8, 9), "cuda:sm_90a": (9, 0)}
    cases = list(
        product(
            targets, (16, 31, 32, 40, 63, 64, 96, 128, 168, 255), (0, 1, 1024, 20000, 49152), (32, 96, 128, 256, 1024)
        )
    )
    rows: list[str] = []
    for target, registers, shared, threads in cases:
        sm = limits_of(target)
        assert sm is not None
        major, minor = targets[target]
        rows.append(f"{major} {minor} {registers} {shared} {threads} {sm.shared_bytes} {sm.warps} {sm.blocks}")
    said = subprocess.run([program], input="\n".join(rows), capture_output=True, text=True, check=True).stdout.split()
    wrong = [
        (case, int(theirs), ours)
        for case, theirs in zip(cases, said, strict=True)
        if (ours := _resident(*case)) != int(theirs)
    ]
    assert wrong == []


def test_63_registers_halve_the_warps_of_an_sm() -> None:
    sm = limits_of("cuda:sm_90a")
    assert sm is not None
    found = occupancy(KernelResources(kernel="k", registers=63), 256, sm)
    assert found is not None and (found.percent, found.limiter) == (50.0, "registers")


def test_what_is_not_known_is_not_guessed() -> None:
    assert limits_of("cuda:sm_999") is None
    sm = limits_of("cuda:sm_80")
    assert sm is not None and occupancy(KernelResources(kernel="k"), 256, sm) is None
