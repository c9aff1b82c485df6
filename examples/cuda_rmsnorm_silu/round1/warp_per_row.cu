// One warp per row: no shared memory and no barrier, at the price of more registers per thread.
#include "contract.h"
#include <cuda_runtime.h>

constexpr int kColumns = HIERA_DIM_x_1, kWarps = 4, kVectors = kColumns / 4 / 32;
constexpr float kEps = 1e-6f;

__device__ float silu(float v) { return v / (1.f + expf(-v)); }

__global__ void __launch_bounds__(32 * kWarps) rmsnorm_silu(const float4* x, const float4* weight, float4* out) {
    const size_t row = (size_t(blockIdx.x) * kWarps + threadIdx.x / 32) * (kColumns / 4);
    const int lane = threadIdx.x % 32;
    float4 v[kVectors];
    float sum = 0.f;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
        v[i] = __ldcs(&x[row + i * 32 + lane]);
        sum += v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z + v[i].w * v[i].w;
    }
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    const float scale = rsqrtf(sum / kColumns + kEps);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
        const float4 w = weight[i * 32 + lane];
        const float4 y = {silu(v[i].x * scale * w.x), silu(v[i].y * scale * w.y), silu(v[i].z * scale * w.z),
                          silu(v[i].w * scale * w.w)};
        __stcs(&out[row + i * 32 + lane], y);
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* params, const hiera_outputs* out, void*,
                         cudaStream_t stream) {
    static_assert(HIERA_DIM_x_0 % kWarps == 0, "whole blocks");
    rmsnorm_silu<<<HIERA_DIM_x_0 / kWarps, 32 * kWarps, 0, stream>>>(
        (const float4*)in->x, (const float4*)params->weight, (float4*)out->out);
    return cudaGetLastError();
}
