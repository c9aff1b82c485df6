// A block a row, every access to memory is a float4.
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

__global__ void __launch_bounds__(THREADS) softmax(const float* __restrict__ in, float* __restrict__ out) {
    const float4* x = (const float4*)in + size_t(blockIdx.x) * (C / 4);
    float4* y = (float4*)out + size_t(blockIdx.x) * (C / 4);
    float top = -INFINITY, sum = 0;
    for (int q = threadIdx.x; q < C / 4; q += THREADS) {
        const float4 v = x[q];
        top = fmaxf(top, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    }
    top = block_max(top);
    for (int q = threadIdx.x; q < C / 4; q += THREADS) {
        const float4 v = x[q];
        sum += expf(v.x - top) + expf(v.y - top) + expf(v.z - top) + expf(v.w - top);
    }
    const float scale = 1 / block_sum(sum);
    for (int q = threadIdx.x; q < C / 4; q += THREADS) {
        const float4 v = x[q];
        y[q] = make_float4(expf(v.x - top) * scale, expf(v.y - top) * scale, expf(v.z - top) * scale, expf(v.w - top) * scale);
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    softmax<<<R, THREADS, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
