// Blocks leave partial sums in pinned host memory that is mapped into the device; a second kernel adds them.
// task: row_means
#include "contract.h"
__global__ void partial(const float* x, float* sums) {
    float sum = 0;
    const float* own = x + blockIdx.x * 512;
    for (int i = threadIdx.x; i < 512; i += 32) sum += own[i];
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
__global__ void finish(const float* sums, float* y) {
    float sum = 0;
    for (int i = 0; i < 8; i++) sum += sums[threadIdx.x * 8 + i];
    y[threadIdx.x] = sum / 4096;
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    static float* sums = nullptr;
    if (!sums && cudaHostAlloc(&sums, 64 * 8 * sizeof(float), cudaHostAllocMapped)) return 1;
    partial<<<64 * 8, 32, 0, stream>>>(in->x, sums);
    finish<<<1, 64, 0, stream>>>(sums, out->out);
    return cudaGetLastError();
}
