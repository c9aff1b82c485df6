// Whole trips unrolled without a predicate; of the ragged last one only the store has one.
#include "contract.h"

const int R = HIERA_DIM_x_0, C = HIERA_DIM_x_1, THREADS = 128;
const int PAIRS = C / 2, WHOLE = PAIRS / THREADS, LAST = PAIRS - 1;

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

__device__ float sum_of_exp(float2 v, float top) { return expf(v.x - top) + expf(v.y - top); }

__global__ void __launch_bounds__(THREADS) log_softmax(const __half2* __restrict__ x, __half2* __restrict__ y) {
    const int t = threadIdx.x, tail = min(WHOLE * THREADS + t, LAST);
    const bool inside = WHOLE * THREADS + t <= LAST;
    x += size_t(blockIdx.x) * PAIRS, y += size_t(blockIdx.x) * PAIRS;
    float2 v = __half22float2(x[tail]);
    float top = fmaxf(v.x, v.y);
#pragma unroll
    for (int k = 0; k < WHOLE; k++) {
        const float2 u = __half22float2(x[k * THREADS + t]);
        top = fmaxf(top, fmaxf(u.x, u.y));
    }
    top = block_max(top);
    float sum = inside ? sum_of_exp(v, top) : 0;
#pragma unroll
    for (int k = 0; k < WHOLE; k++) sum += sum_of_exp(__half22float2(x[k * THREADS + t]), top);
    const float less = logf(block_sum(sum));
#pragma unroll
    for (int k = 0; k < WHOLE; k++) {
        const float2 u = __half22float2(x[k * THREADS + t]);
        y[k * THREADS + t] = __floats2half2_rn(u.x - top - less, u.y - top - less);
    }
    if (inside) y[tail] = __floats2half2_rn(v.x - top - less, v.y - top - less);
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    log_softmax<<<R, THREADS, 0, stream>>>((const __half2*)in->x, (__half2*)out->out);
    return cudaGetLastError();
}
