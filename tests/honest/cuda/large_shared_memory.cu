// Four rows lie in 64 KB of dynamic shared memory, above what a kernel may have unasked.
// task: row_means
#include "contract.h"
static const int N = 4096, ROWS = 4, BYTES = ROWS * N * sizeof(float);
__global__ void means(const float* x, float* y) {
    extern __shared__ float rows[];
    for (int i = threadIdx.x; i < ROWS * N; i += blockDim.x) rows[i] = x[blockIdx.x * ROWS * N + i];
    __syncthreads();
    const int warp = threadIdx.x / 32;
    float sum = 0;
    for (int i = threadIdx.x % 32; i < N; i += 32) sum += rows[warp * N + i];
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) y[blockIdx.x * ROWS + warp] = sum / N;
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    static const cudaError_t allowed = cudaFuncSetAttribute(means, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
    if (allowed) return allowed;
    means<<<64 / ROWS, 32 * ROWS, BYTES, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
