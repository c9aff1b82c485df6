// CUB's block reduction in two stages, eight independent items a thread in each step.
#include "contract.h"
#include <cub/block/block_reduce.cuh>

const int N = HIERA_NUMEL_a, THREADS = 256, BLOCKS = 2048, ITEMS = 8;
using Reduce = cub::BlockReduce<float, THREADS>;

__global__ void __launch_bounds__(THREADS) squares(const float* a, const float* b, float* part) {
    __shared__ typename Reduce::TempStorage storage;
    float items[ITEMS] = {};
    for (int i = blockIdx.x * THREADS * ITEMS + threadIdx.x; i < N; i += BLOCKS * THREADS * ITEMS)
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const float d = a[i + k * THREADS] - b[i + k * THREADS];
            items[k] += d * d;
        }
    const float sum = Reduce(storage).Sum(items);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

__global__ void total(const float* part, float* y) {
    __shared__ typename Reduce::TempStorage storage;
    float items[BLOCKS / THREADS];
    for (int k = 0; k < BLOCKS / THREADS; k++) items[k] = part[k * THREADS + threadIdx.x];
    const float sum = Reduce(storage).Sum(items);
    if (threadIdx.x == 0) *y = sum / N;
}

extern "C" size_t hiera_workspace_bytes(void) { return sizeof(float) * BLOCKS; }
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void* workspace, cudaStream_t stream) {
    float* part = static_cast<float*>(workspace);
    squares<<<BLOCKS, THREADS, 0, stream>>>(in->a, in->b, part);
    total<<<1, THREADS, 0, stream>>>(part, out->out);
    return cudaGetLastError();
}
