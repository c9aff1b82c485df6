// A block a group: unrolled loops over channel and plane give each channel uniform factors; reductions without a branch.
#include "contract.h"

const int N = HIERA_DIM_x_0, GROUPS = 32, CHANNELS = HIERA_DIM_x_1 / GROUPS, PLANE = HIERA_DIM_x_2 * HIERA_DIM_x_3;
const int SIZE = CHANNELS * PLANE, THREADS = 256;

__device__ float silu(float v) { return v / (1 + expf(-v)); }

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
group_norm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ y) {
    const int channel = blockIdx.x % GROUPS * CHANNELS;
    const size_t start = size_t(blockIdx.x) * SIZE + threadIdx.x;
    x += start, y += start;
    float sum = 0, squares = 0;
#pragma unroll
    for (int i = 0; i < SIZE; i += THREADS) sum += x[i];
    const float mean = block_sum(sum) / SIZE;
#pragma unroll
    for (int i = 0; i < SIZE; i += THREADS) squares += (x[i] - mean) * (x[i] - mean);
    const float inverse = rsqrtf(block_sum(squares) / SIZE + 1e-5f);
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        const float scale = inverse * weight[channel + c], shift = bias[channel + c];
#pragma unroll
        for (int i = 0; i < PLANE; i += THREADS) y[c * PLANE + i] = silu((x[c * PLANE + i] - mean) * scale + shift);
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    group_norm<<<N * GROUPS, THREADS, 0, stream>>>(in->x, p->norm_weight, p->norm_bias, out->out);
    return cudaGetLastError();
}
