// A block a row; the row stays in registers, so that it is read once and exponentiated once.
#include "contract.h"

const int R = HIERA_DIM_x_0, C = HIERA_DIM_x_1, THREADS = 256;

__device__ float block_max(float v) {
    __shared__ float part[THREADS / 32];
    for (int m = 16; m; m /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, m));
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[0];
    for (int k = 1; k < THREADS / 32; k++) v = fmaxf(v, part[k]);
    return v;
}

__device__ float block_sum(float v) {
    __shared__ float part[THREADS / 32];
    for (int m = 16; m; m /= 2) v += __shfl_xor_sync(~0u, v, m);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int k = 0; k < THREADS / 32; k++) v += part[k];
    return v;
}

__global__ void __launch_bounds__(THREADS) softmax(const float* __restrict__ x, float* __restrict__ y) {
    const size_t start = size_t(blockIdx.x) * C + threadIdx.x;
    float v[C / THREADS], top = -INFINITY, sum = 0;
#pragma unroll
    for (int k = 0; k < C / THREADS; k++) v[k] = x[start + k * THREADS];
#pragma unroll
    for (int k = 0; k < C / THREADS; k++) top = fmaxf(top, v[k]);
    top = block_max(top);
#pragma unroll
    for (int k = 0; k < C / THREADS; k++) sum += v[k] = expf(v[k] - top);
    const float scale = 1 / block_sum(sum);
#pragma unroll
    for (int k = 0; k < C / THREADS; k++) y[start + k * THREADS] = v[k] * scale;
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    softmax<<<R, THREADS, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
