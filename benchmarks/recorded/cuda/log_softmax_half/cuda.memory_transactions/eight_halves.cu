// A block a row, eight halves a thread in one load and one store of 16 bytes.
#include "contract.h"

const int R = HIERA_DIM_x_0, C = HIERA_DIM_x_1, THREADS = 128;
const int CHUNKS = C / 8;
static_assert(C % 8 == 0 && CHUNKS <= THREADS, "one chunk a thread");

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

__global__ void __launch_bounds__(THREADS) log_softmax(const uint4* __restrict__ x, uint4* __restrict__ y) {
    const size_t at = size_t(blockIdx.x) * CHUNKS + threadIdx.x;
    uint4 chunk;
    __half2* h = (__half2*)&chunk;
    float2 v[4];
    float top = -INFINITY, sum = 0;
    if (threadIdx.x < CHUNKS) {
        chunk = x[at];
        for (int k = 0; k < 4; k++) v[k] = __half22float2(h[k]), top = fmaxf(top, fmaxf(v[k].x, v[k].y));
    }
    top = block_max(top);
    if (threadIdx.x < CHUNKS)
        for (int k = 0; k < 4; k++) sum += expf(v[k].x - top) + expf(v[k].y - top);
    const float less = logf(block_sum(sum));
    if (threadIdx.x < CHUNKS) {
        for (int k = 0; k < 4; k++) h[k] = __floats2half2_rn(v[k].x - top - less, v[k].y - top - less);
        y[at] = chunk;
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    log_softmax<<<R, THREADS, 0, stream>>>((const uint4*)in->x, (uint4*)out->out);
    return cudaGetLastError();
}
