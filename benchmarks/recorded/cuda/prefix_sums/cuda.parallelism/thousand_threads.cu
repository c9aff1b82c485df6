// 1024 threads per row, four independent warp scans in flight in each, then the 128 totals.
#include "contract.h"

const int R = HIERA_DIM_x_0, C = HIERA_DIM_x_1;
const int THREADS = 1024, PARTS = C / THREADS;
static_assert(PARTS == 4, "warp 0 scans four totals a lane");

__device__ float warp_scan(float v, int lane) {
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const float below = __shfl_up_sync(~0u, v, d);
        v = lane >= d ? v + below : v;
    }
    return v;
}

__global__ void __launch_bounds__(THREADS, 2) scan(const float* __restrict__ x, float* __restrict__ y) {
    __shared__ float totals[PARTS * 32], before[PARTS * 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const size_t at = size_t(blockIdx.x) * C + threadIdx.x;
    float v[PARTS];
#pragma unroll
    for (int k = 0; k < PARTS; k++) v[k] = x[at + k * THREADS];
#pragma unroll
    for (int k = 0; k < PARTS; k++) v[k] = warp_scan(v[k], lane);
    if (lane == 31)
        for (int k = 0; k < PARTS; k++) totals[k * 32 + warp] = v[k];
    __syncthreads();
    if (warp == 0) {
        const float* t = totals + lane * 4;
        const float below = __shfl_up_sync(~0u, warp_scan(t[0] + t[1] + t[2] + t[3], lane), 1);
        float sum = lane ? below : 0;
        for (int i = 0; i < 4; i++) before[lane * 4 + i] = sum, sum += t[i];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < PARTS; k++) y[at + k * THREADS] = before[k * 32 + warp] + v[k];
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    scan<<<R, THREADS, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
