// 4096 blocks, four independent sums a thread: more warps and more loads in flight.
#include "contract.h"

const int N = HIERA_NUMEL_a, THREADS = 256, BLOCKS = 4096, SUMS = 4;

__device__ float block_sum(float s) {
    __shared__ float part[THREADS / 32];
    for (int o = 16; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    s = part[threadIdx.x % (THREADS / 32)];
    for (int o = THREADS / 64; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
    return s;
}

__global__ void __launch_bounds__(THREADS, 8) squares(const float* a, const float* b, float* part) {
    const int first = blockIdx.x * (N / BLOCKS), end = first + N / BLOCKS;
    float s[SUMS] = {};
    for (int i = first + threadIdx.x; i < end; i += SUMS * THREADS)
#pragma unroll
        for (int k = 0; k < SUMS; k++) {
            const float d = a[i + k * THREADS] - b[i + k * THREADS];
            s[k] += d * d;
        }
    const float sum = block_sum((s[0] + s[1]) + (s[2] + s[3]));
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

__global__ void total(const float* part, float* y) {
    float s = 0;
    for (int i = threadIdx.x; i < BLOCKS; i += THREADS) s += part[i];
    s = block_sum(s);
    if (threadIdx.x == 0) *y = s / N;
}

extern "C" size_t hiera_workspace_bytes(void) { return sizeof(float) * BLOCKS; }
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void* workspace, cudaStream_t stream) {
    float* part = static_cast<float*>(workspace);
    squares<<<BLOCKS, THREADS, 0, stream>>>(in->a, in->b, part);
    total<<<1, THREADS, 0, stream>>>(part, out->out);
    return cudaGetLastError();
}
