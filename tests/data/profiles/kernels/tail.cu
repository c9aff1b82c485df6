// Planted: 272 blocks where an H200 holds 264 at a time, so that eight of them start when all others have ended.
#include "contract.h"
#include <cuda_runtime.h>

constexpr int kCount = HIERA_DIM_x_0 * HIERA_DIM_x_1, kThreads = 1024, kBlocks = 272, kSteps = 48;
constexpr int kShare = (kCount + kBlocks - 1) / kBlocks;

__global__ void __launch_bounds__(kThreads, 2) iterate(const float* x, float* out) {
    const int end = min(kCount, int(blockIdx.x + 1) * kShare);
#pragma unroll 1
    for (int i = blockIdx.x * kShare + threadIdx.x; i < end; i += kThreads) {
        float v = x[i];
#pragma unroll
        for (int k = 0; k < kSteps; ++k) v = v * (1.01f - .01f * v * v);
        out[i] = v;
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    iterate<<<kBlocks, kThreads, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
