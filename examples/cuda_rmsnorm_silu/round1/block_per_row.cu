// One block per row; the row stays in registers between the reduction and the second use, so that it is read once.
#include "contract.h"
#include <cuda_runtime.h>

constexpr int kColumns = HIERA_DIM_x_1, kThreads = 256, kVectors = kColumns / 4 / kThreads;
static_assert(kVectors * kThreads * 4 == kColumns, "whole float4 vectors per thread");
constexpr float kEps = 1e-6f;

__device__ float block_sum(float v) {
    __shared__ float partial[kThreads / 32];
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
    __syncthreads();
    float sum = 0.f;
    for (int i = 0; i < kThreads / 32; ++i) sum += partial[i];
    return sum;
}

__device__ float silu(float v) { return v / (1.f + expf(-v)); }

__global__ void __launch_bounds__(kThreads) rmsnorm_silu(const float4* x, const float4* weight, float4* out) {
    const size_t row = size_t(blockIdx.x) * (kColumns / 4);
    float4 v[kVectors];
    float sum = 0.f;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
        v[i] = __ldcs(&x[row + i * kThreads + threadIdx.x]);
        sum += v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z + v[i].w * v[i].w;
    }
    const float scale = rsqrtf(block_sum(sum) / kColumns + kEps);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
        const float4 w = weight[i * kThreads + threadIdx.x];
        const float4 y = {silu(v[i].x * scale * w.x), silu(v[i].y * scale * w.y), silu(v[i].z * scale * w.z),
                          silu(v[i].w * scale * w.w)};
        __stcs(&out[row + i * kThreads + threadIdx.x], y);
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* params, const hiera_outputs* out, void*,
                         cudaStream_t stream) {
    rmsnorm_silu<<<HIERA_DIM_x_0, kThreads, 0, stream>>>((const float4*)in->x, (const float4*)params->weight,
                                                         (float4*)out->out);
    return cudaGetLastError();
}
