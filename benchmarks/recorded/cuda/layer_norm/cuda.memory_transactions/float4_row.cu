// A block a row, one float4 a thread for input, weight, bias and output.
#include "contract.h"

const int R = HIERA_DIM_x_0, C = HIERA_DIM_x_1, THREADS = 256;

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
layer_norm(const float4* __restrict__ x, const float4* __restrict__ weight, const float4* __restrict__ bias, float4* __restrict__ y) {
    const int t = threadIdx.x;
    const size_t at = size_t(blockIdx.x) * (C / 4) + t;
    float4 v = x[at];
    const float mean = block_sum(v.x + v.y + v.z + v.w) / C;
    v = make_float4(v.x - mean, v.y - mean, v.z - mean, v.w - mean);
    const float inverse = rsqrtf(block_sum(v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w) / C + 1e-5f);
    const float4 w = weight[t], b = bias[t];
    y[at] = make_float4(v.x * inverse * w.x + b.x, v.y * inverse * w.y + b.y, v.z * inverse * w.z + b.z, v.w * inverse * w.w + b.w);
}

static_assert(C == THREADS * 4, "one float4 a thread");

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    layer_norm<<<R, THREADS, 0, stream>>>((const float4*)in->x, (const float4*)p->norm_weight, (const float4*)p->norm_bias, (float4*)out->out);
    return cudaGetLastError();
}
