// A warp a row, four rows a block: no barrier, reductions by shuffles.
#include "contract.h"

const int R = HIERA_DIM_x_0, C = HIERA_DIM_x_1, THREADS = 128;

__device__ float warp_max(float v) {
    for (int m = 16; m; m /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, m));
    return v;
}

__device__ float warp_sum(float v) {
    for (int m = 16; m; m /= 2) v += __shfl_xor_sync(~0u, v, m);
    return v;
}

__global__ void __launch_bounds__(THREADS) log_softmax(const __half2* __restrict__ x, __half2* __restrict__ y) {
    const int row = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    x += size_t(row) * (C / 2), y += size_t(row) * (C / 2);
    float top = -INFINITY, sum = 0;
    for (int i = lane; i < C / 2; i += 32) {
        const float2 v = __half22float2(x[i]);
        top = fmaxf(top, fmaxf(v.x, v.y));
    }
    top = warp_max(top);
    for (int i = lane; i < C / 2; i += 32) {
        const float2 v = __half22float2(x[i]);
        sum += expf(v.x - top) + expf(v.y - top);
    }
    const float less = logf(warp_sum(sum));
    for (int i = lane; i < C / 2; i += 32) {
        const float2 v = __half22float2(x[i]);
        y[i] = __floats2half2_rn(v.x - top - less, v.y - top - less);
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    log_softmax<<<R / (THREADS / 32), THREADS, 0, stream>>>((const __half2*)in->x, (__half2*)out->out);
    return cudaGetLastError();
}
