// One warp per row, read and written as float4.
#include "contract.h"

const int R = HIERA_DIM_x_0, C = HIERA_DIM_x_1;
const int WARPS = 4;

__device__ float warp_scan(float v, int lane) {
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const float below = __shfl_up_sync(~0u, v, d);
        v = lane >= d ? v + below : v;
    }
    return v;
}

__global__ void scan(const float* __restrict__ x, float* __restrict__ y) {
    const int lane = threadIdx.x;
    const size_t row = size_t(blockIdx.x * WARPS + threadIdx.y) * C;
    const float4* from = reinterpret_cast<const float4*>(x + row) + lane;
    float4* to = reinterpret_cast<float4*>(y + row) + lane;
    float carry = 0;
#pragma unroll 4
    for (int c = 0; c < C / 4; c += 32) {
        float4 v = from[c];
        v.y += v.x, v.z += v.y, v.w += v.z;
        const float total = warp_scan(v.w, lane), below = __shfl_up_sync(~0u, total, 1);
        const float base = lane ? carry + below : carry;
        to[c] = make_float4(base + v.x, base + v.y, base + v.z, base + v.w);
        carry += __shfl_sync(~0u, total, 31);
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    scan<<<R / WARPS, dim3(32, WARPS), 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
