// Both matrices stream through four stages of asynchronous copies while the squares are added.
#include "contract.h"
#include <cuda_pipeline.h>

const int N = HIERA_NUMEL_a, THREADS = 256, BLOCKS = 512, STAGES = 4, STEPS = N / 4 / (BLOCKS * THREADS);

__device__ float block_sum(float s) {
    __shared__ float part[THREADS / 32];
    for (int o = 16; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    s = part[threadIdx.x % (THREADS / 32)];
    for (int o = THREADS / 64; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
    return s;
}

__global__ void __launch_bounds__(THREADS) squares(const float4* a, const float4* b, float* part) {
    __shared__ float4 left[STAGES][THREADS], right[STAGES][THREADS];
    const int first = blockIdx.x * THREADS + threadIdx.x;
    auto load = [&](int t) {
        if (t < STEPS) {
            const int i = first + t * BLOCKS * THREADS;
            __pipeline_memcpy_async(&left[t % STAGES][threadIdx.x], a + i, 16);
            __pipeline_memcpy_async(&right[t % STAGES][threadIdx.x], b + i, 16);
        }
        __pipeline_commit();
    };
    for (int t = 0; t < STAGES - 1; t++) load(t);
    float s = 0;
    for (int t = 0; t < STEPS; t++) {
        load(t + STAGES - 1);
        __pipeline_wait_prior(STAGES - 1);
        const float4 u = left[t % STAGES][threadIdx.x], v = right[t % STAGES][threadIdx.x];
        const float x = u.x - v.x, y = u.y - v.y, z = u.z - v.z, w = u.w - v.w;
        s += (x * x + y * y) + (z * z + w * w);
    }
    s = block_sum(s);
    if (threadIdx.x == 0) part[blockIdx.x] = s;
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
    squares<<<BLOCKS, THREADS, 0, stream>>>(reinterpret_cast<const float4*>(in->a), reinterpret_cast<const float4*>(in->b), part);
    total<<<1, THREADS, 0, stream>>>(part, out->out);
    return cudaGetLastError();
}
