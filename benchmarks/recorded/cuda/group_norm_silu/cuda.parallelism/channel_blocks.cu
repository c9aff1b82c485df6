// A block a channel, four times as many as groups: mean and squares of each to the workspace, a second kernel joins them.
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

__global__ void __launch_bounds__(THREADS) statistics(const float* __restrict__ x, float2* __restrict__ part) {
    x += size_t(blockIdx.x) * PLANE;
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < PLANE; i += THREADS) sum += x[i];
    const float mean = block_sum(sum) / PLANE;
    for (int i = threadIdx.x; i < PLANE; i += THREADS) squares += (x[i] - mean) * (x[i] - mean);
    squares = block_sum(squares);
    if (threadIdx.x == 0) part[blockIdx.x] = make_float2(mean, squares);
}

__global__ void __launch_bounds__(THREADS)
apply(const float* __restrict__ x, const float2* __restrict__ part, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ y) {
    const int channel = blockIdx.x % (GROUPS * CHANNELS);
    const size_t start = size_t(blockIdx.x) * PLANE;
    part += blockIdx.x / CHANNELS * CHANNELS;
    float mean = 0, squares = 0;
    for (int c = 0; c < CHANNELS; c++) mean += part[c].x / CHANNELS;
    for (int c = 0; c < CHANNELS; c++) squares += part[c].y + PLANE * (part[c].x - mean) * (part[c].x - mean);
    const float scale = rsqrtf(squares / SIZE + 1e-5f) * weight[channel], shift = bias[channel];
    for (int i = threadIdx.x; i < PLANE; i += THREADS) y[start + i] = silu((x[start + i] - mean) * scale + shift);
}

extern "C" size_t hiera_workspace_bytes(void) { return N * GROUPS * CHANNELS * sizeof(float2); }

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void* workspace, cudaStream_t stream) {
    float2* part = (float2*)workspace;
    statistics<<<N * GROUPS * CHANNELS, THREADS, 0, stream>>>(in->x, part);
    apply<<<N * GROUPS * CHANNELS, THREADS, 0, stream>>>(in->x, part, p->norm_weight, p->norm_bias, out->out);
    return cudaGetLastError();
}
