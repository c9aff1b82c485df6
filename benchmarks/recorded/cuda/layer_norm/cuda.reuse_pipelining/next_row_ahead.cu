// Blocks walk over rows: weight and bias stay in registers, the next row is loaded while this one is reduced.
#include "contract.h"

const int R = HIERA_DIM_x_0, C = HIERA_DIM_x_1, THREADS = 256, EACH = C / THREADS, BLOCKS = 132 * 4;

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

__global__ void __launch_bounds__(THREADS)
layer_norm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ y) {
    const int t = threadIdx.x;
    float w[EACH], b[EACH], v[EACH], next[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        w[k] = weight[k * THREADS + t], b[k] = bias[k * THREADS + t];
        next[k] = x[size_t(blockIdx.x) * C + k * THREADS + t];
    }
    for (int row = blockIdx.x; row < R; row += BLOCKS) {
        float sum = 0, squares = 0;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            v[k] = next[k];
            if (row + BLOCKS < R) next[k] = x[size_t(row + BLOCKS) * C + k * THREADS + t];
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) sum += v[k];
        const float mean = block_sum(sum) / C;
#pragma unroll
        for (int k = 0; k < EACH; k++) v[k] -= mean, squares += v[k] * v[k];
        const float inverse = rsqrtf(block_sum(squares) / C + 1e-5f);
#pragma unroll
        for (int k = 0; k < EACH; k++) y[size_t(row) * C + k * THREADS + t] = v[k] * inverse * w[k] + b[k];
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    layer_norm<<<BLOCKS, THREADS, 0, stream>>>(in->x, p->norm_weight, p->norm_bias, out->out);
    return cudaGetLastError();
}
