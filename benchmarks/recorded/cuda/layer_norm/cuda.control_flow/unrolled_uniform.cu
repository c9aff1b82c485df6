// A block a row: trip counts known and unrolled whole, reductions without a branch.
#include "contract.h"

const int R = HIERA_DIM_x_0, C = HIERA_DIM_x_1, THREADS = 256;

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

__global__ void __launch_bounds__(THREADS)
layer_norm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ y) {
    const int t = threadIdx.x;
    x += size_t(blockIdx.x) * C, y += size_t(blockIdx.x) * C;
    float sum = 0, squares = 0;
#pragma unroll
    for (int c = 0; c < C; c += THREADS) sum += x[c + t];
    const float mean = block_sum(sum) / C;
#pragma unroll
    for (int c = 0; c < C; c += THREADS) squares += (x[c + t] - mean) * (x[c + t] - mean);
    const float inverse = rsqrtf(block_sum(squares) / C + 1e-5f);
#pragma unroll
    for (int c = 0; c < C; c += THREADS) y[c + t] = (x[c + t] - mean) * inverse * weight[c + t] + bias[c + t];
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    layer_norm<<<R, THREADS, 0, stream>>>(in->x, p->norm_weight, p->norm_bias, out->out);
    return cudaGetLastError();
}
