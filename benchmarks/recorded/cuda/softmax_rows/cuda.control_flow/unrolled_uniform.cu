// A block a row: trip counts known and unrolled whole, reductions without a branch.
#include "contract.h"

const int R = HIERA_DIM_x_0, C = HIERA_DIM_x_1, THREADS = 256;

__device__ float block_max(float v) {
    __shared__ float part[THREADS / 32];
#pragma unroll
    for (int m = 16; m; m /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, m));
    __syncthreads();
    part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[threadIdx.x % (THREADS / 32)];
#pragma unroll
    for (int m = THREADS / 64; m; m /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, m));
    return v;
}

__device__ float block_sum(float v) {
    __shared__ float part[THREADS / 32];
#pragma unroll
    for (int m = 16; m; m /= 2) v += __shfl_xor_sync(~0u, v, m);
    __syncthreads();
    part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[threadIdx.x % (THREADS / 32)];
#pragma unroll
    for (int m = THREADS / 64; m; m /= 2) v += __shfl_xor_sync(~0u, v, m);
    return v;
}

__global__ void __launch_bounds__(THREADS) softmax(const float* __restrict__ x, float* __restrict__ y) {
    const size_t start = size_t(blockIdx.x) * C + threadIdx.x;
    x += start, y += start;
    float top = -INFINITY, sum = 0;
#pragma unroll
    for (int c = 0; c < C; c += THREADS) top = fmaxf(top, x[c]);
    top = block_max(top);
#pragma unroll
    for (int c = 0; c < C; c += THREADS) sum += expf(x[c] - top);
    const float scale = 1 / block_sum(sum);
#pragma unroll
    for (int c = 0; c < C; c += THREADS) y[c] = expf(x[c] - top) * scale;
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    softmax<<<R, THREADS, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
