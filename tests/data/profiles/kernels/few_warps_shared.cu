// Planted: a block asks for 100 KiB of shared memory that it hardly uses, so that an SM holds two blocks of four warps.
#include "contract.h"
#include <cuda_runtime.h>

constexpr int kCount = HIERA_DIM_x_0 * HIERA_DIM_x_1, kThreads = 128, kBlocks = 1320, kShared = 100 << 10;

__global__ void __launch_bounds__(kThreads) scale(const float* x, float* out) {
    extern __shared__ float buffer[];
#pragma unroll 1
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < kCount; i += kBlocks * kThreads) {
        buffer[threadIdx.x] = x[i] * 1.5f;
        __syncwarp();
        out[i] = buffer[threadIdx.x] + .5f;
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    const cudaError_t set = cudaFuncSetAttribute(scale, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
    if (set != cudaSuccess) return set;
    scale<<<kBlocks, kThreads, kShared, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
