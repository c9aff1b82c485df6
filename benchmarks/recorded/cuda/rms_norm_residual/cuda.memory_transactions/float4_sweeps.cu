// A block a row, every access to memory is a float4.
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

__device__ float4 add(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }

__global__ void __launch_bounds__(THREADS)
rms_norm(const float4* __restrict__ x, const float4* __restrict__ r, const float4* __restrict__ weight, float4* __restrict__ y) {
    const size_t start = size_t(blockIdx.x) * (C / 4);
    float sum = 0;
    for (int q = threadIdx.x; q < C / 4; q += THREADS) {
        const float4 h = add(x[start + q], r[start + q]);
        sum += h.x * h.x + h.y * h.y + h.z * h.z + h.w * h.w;
    }
    const float inverse = rsqrtf(block_sum(sum) / C + 1e-6f);
    for (int q = threadIdx.x; q < C / 4; q += THREADS) {
        const float4 h = add(x[start + q], r[start + q]), w = weight[q];
        y[start + q] = make_float4(h.x * inverse * w.x, h.y * inverse * w.y, h.z * inverse * w.z, h.w * inverse * w.w);
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    rms_norm<<<R, THREADS, 0, stream>>>((const float4*)in->x, (const float4*)in->r, (const float4*)p->weight, (float4*)out->out);
    return cudaGetLastError();
}
