// One warp per row: shuffles and a carry in one uniform unrolled loop, no barriers.
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
    const size_t at = size_t(blockIdx.x * WARPS + threadIdx.y) * C + lane;
    float carry = 0;
#pragma unroll 8
    for (int c = 0; c < C; c += 32) {
        const float v = warp_scan(x[at + c], lane);
        y[at + c] = carry + v;
        carry += __shfl_sync(~0u, v, 31);
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    scan<<<R / WARPS, dim3(32, WARPS), 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
