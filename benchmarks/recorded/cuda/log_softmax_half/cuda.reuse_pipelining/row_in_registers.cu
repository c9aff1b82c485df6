// A block a row, held in registers; maximum and sum are joined in one online reduction.
#include "contract.h"

const int R = HIERA_DIM_x_0, C = HIERA_DIM_x_1, THREADS = 128;
const int PAIRS = C / 2, EACH = (PAIRS + THREADS - 1) / THREADS;

__device__ float2 join(float2 a, float2 b) {
    const float top = fmaxf(a.x, b.x);
    return make_float2(top, a.y * expf(a.x - top) + b.y * expf(b.x - top));
}

__global__ void __launch_bounds__(THREADS) log_softmax(const __half2* __restrict__ x, __half2* __restrict__ y) {
    __shared__ float2 part[THREADS / 32];
    const int t = threadIdx.x;
    x += size_t(blockIdx.x) * PAIRS, y += size_t(blockIdx.x) * PAIRS;
    float2 v[EACH], own = make_float2(-1e30f, 0);
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        v[k] = k * THREADS + t < PAIRS ? __half22float2(x[k * THREADS + t]) : make_float2(-INFINITY, -INFINITY);
        own.x = fmaxf(own.x, fmaxf(v[k].x, v[k].y));
    }
#pragma unroll
    for (int k = 0; k < EACH; k++) own.y += expf(v[k].x - own.x) + expf(v[k].y - own.x);
    for (int m = 16; m; m /= 2) own = join(own, make_float2(__shfl_xor_sync(~0u, own.x, m), __shfl_xor_sync(~0u, own.y, m)));
    if (t % 32 == 0) part[t / 32] = own;
    __syncthreads();
    own = part[0];
    for (int k = 1; k < THREADS / 32; k++) own = join(own, part[k]);
    const float less = logf(own.y);
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (k * THREADS + t < PAIRS) y[k * THREADS + t] = __floats2half2_rn(v[k].x - own.x - less, v[k].y - own.x - less);
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    log_softmax<<<R, THREADS, 0, stream>>>((const __half2*)in->x, (__half2*)out->out);
    return cudaGetLastError();
}
