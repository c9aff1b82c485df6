// A block keeps its whole row in registers: one read, one barrier, one write.
#include "contract.h"

const int R = HIERA_DIM_x_0, C = HIERA_DIM_x_1;
const int THREADS = 256, PARTS = C / 4 / THREADS, WARPS = THREADS / 32;
static_assert(PARTS * WARPS == 32, "a warp scans the totals");

__device__ float warp_scan(float v, int lane) {
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const float below = __shfl_up_sync(~0u, v, d);
        v = lane >= d ? v + below : v;
    }
    return v;
}

__global__ void scan(const float* __restrict__ x, float* __restrict__ y) {
    __shared__ float totals[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float4* from = reinterpret_cast<const float4*>(x + size_t(blockIdx.x) * C) + threadIdx.x;
    float4* to = reinterpret_cast<float4*>(y + size_t(blockIdx.x) * C) + threadIdx.x;
    float4 v[PARTS];
    float below[PARTS];
#pragma unroll
    for (int k = 0; k < PARTS; k++) v[k] = from[k * THREADS];
#pragma unroll
    for (int k = 0; k < PARTS; k++) {
        v[k].y += v[k].x, v[k].z += v[k].y, v[k].w += v[k].z;
        const float total = warp_scan(v[k].w, lane), left = __shfl_up_sync(~0u, total, 1);
        below[k] = lane ? left : 0;
        if (lane == 31) totals[k * WARPS + warp] = total;
    }
    __syncthreads();
    const float sums = warp_scan(totals[lane], lane);
#pragma unroll
    for (int k = 0; k < PARTS; k++) {
        const int place = k * WARPS + warp;
        const float earlier = __shfl_sync(~0u, sums, place ? place - 1 : 0), base = below[k] + (place ? earlier : 0);
        to[k * THREADS] = make_float4(base + v[k].x, base + v[k].y, base + v[k].z, base + v[k].w);
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    scan<<<R, THREADS, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
