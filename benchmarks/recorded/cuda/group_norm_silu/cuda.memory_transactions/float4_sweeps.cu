// A block a group, every access to x and y is a float4.
#include "contract.h"

const int N = HIERA_DIM_x_0, GROUPS = 32, CHANNELS = HIERA_DIM_x_1 / GROUPS, PLANE = HIERA_DIM_x_2 * HIERA_DIM_x_3;
const int SIZE = CHANNELS * PLANE, THREADS = 256;

__device__ float silu(float v) { return v / (1 + expf(-v)); }

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
group_norm(const float4* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float4* __restrict__ y) {
    const size_t start = size_t(blockIdx.x) * (SIZE / 4);
    float sum = 0, squares = 0;
    for (int q = threadIdx.x; q < SIZE / 4; q += THREADS) {
        const float4 v = x[start + q];
        sum += v.x + v.y + v.z + v.w;
    }
    const float mean = block_sum(sum) / SIZE;
    for (int q = threadIdx.x; q < SIZE / 4; q += THREADS) {
        const float4 v = x[start + q];
        const float a = v.x - mean, b = v.y - mean, c = v.z - mean, d = v.w - mean;
        squares += a * a + b * b + c * c + d * d;
    }
    const float inverse = rsqrtf(block_sum(squares) / SIZE + 1e-5f);
    for (int q = threadIdx.x; q < SIZE / 4; q += THREADS) {
        const int channel = blockIdx.x % GROUPS * CHANNELS + q / (PLANE / 4);
        const float scale = inverse * weight[channel], shift = bias[channel];
        const float4 v = x[start + q];
        y[start + q] = make_float4(silu((v.x - mean) * scale + shift), silu((v.y - mean) * scale + shift),
                                   silu((v.z - mean) * scale + shift), silu((v.w - mean) * scale + shift));
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    group_norm<<<N * GROUPS, THREADS, 0, stream>>>((const float4*)in->x, p->norm_weight, p->norm_bias, (float4*)out->out);
    return cudaGetLastError();
}
