// The row stays in registers between sum and division: it is read once.
#include "contract.h"

const int ROWS = HIERA_DIM_x_0, COLS = HIERA_DIM_x_1, THREADS = 256, ITEMS = COLS / THREADS;

__device__ float block_sum(float s) {
    __shared__ float part[THREADS / 32];
    for (int o = 16; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    s = part[threadIdx.x % (THREADS / 32)];
    for (int o = THREADS / 64; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
    return s;
}

__global__ void __launch_bounds__(THREADS) norms(const float* __restrict__ x, float* __restrict__ y) {
    const size_t first = size_t(blockIdx.x) * COLS + threadIdx.x;
    float v[ITEMS], s = 0;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) v[i] = x[first + i * THREADS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) s += v[i] * v[i];
    const float k = 1.0f / (sqrtf(block_sum(s)) + 1e-6f);
#pragma unroll
    for (int i = 0; i < ITEMS; i++) y[first + i * THREADS] = v[i] * k;
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    norms<<<ROWS, THREADS, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
