// The twin without divergence: each lane chooses the constants of its piece, and all walk the same way.
#include "contract.h"
#include <cuda_runtime.h>

constexpr int kCount = HIERA_DIM_x_0 * HIERA_DIM_x_1, kThreads = 256, kSteps = 16;

__device__ float piece(float v) {
    const float a = v < -.6f ? 1.01f : v < 0.f ? 1.02f : v < .6f ? .99f : .98f;
    const float b = v < -.6f ? .01f : v < 0.f ? .03f : v < .6f ? .02f : .01f;
#pragma unroll
    for (int k = 0; k < kSteps; ++k) v = v * (a - b * v * v);
    return v;
}

__global__ void __launch_bounds__(kThreads) pieces(const float4* x, float4* out) {
    const int i = blockIdx.x * kThreads + threadIdx.x;
    const float4 v = x[i];
    out[i] = float4{piece(v.x), piece(v.y), piece(v.z), piece(v.w)};
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    pieces<<<kCount / 4 / kThreads, kThreads, 0, stream>>>((const float4*)in->x, (float4*)out->out);
    return cudaGetLastError();
}
