// The second kernel is launched before the first one has ended, and waits inside for its results.
// task: softmax
// needs: 9.0
#include "contract.h"
static const int N = 65536, EACH = 64, PART = N / EACH, THREADS = 128;
__device__ float2 joined(float2 a, float2 b) {
    float top = fmaxf(a.x, b.x);
    return {top, a.y * expf(a.x - top) + b.y * expf(b.x - top)};
}
__global__ void sums(const float* x, float2* partial) {
    __shared__ float2 warps[THREADS / 32];
    float2 own = {x[blockIdx.x * PART + threadIdx.x], 1};
    cudaTriggerProgrammaticLaunchCompletion();
    for (int i = threadIdx.x + THREADS; i < PART; i += THREADS) own = joined(own, {x[blockIdx.x * PART + i], 1});
    for (int step = 16; step; step /= 2)
        own = joined(own, {__shfl_down_sync(~0u, own.x, step), __shfl_down_sync(~0u, own.y, step)});
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = own;
    __syncthreads();
    if (threadIdx.x == 0) partial[blockIdx.x] = joined(joined(warps[0], warps[1]), joined(warps[2], warps[3]));
}
__global__ void divide(const float* x, const float2* partial, float* y) {
    const int row = blockIdx.x / EACH;
    cudaGridDependencySynchronize();
    float2 all = partial[row * EACH];
    for (int n = 1; n < EACH; n++) all = joined(all, partial[row * EACH + n]);
    for (int i = threadIdx.x; i < PART; i += THREADS)
        y[blockIdx.x * PART + i] = expf(x[blockIdx.x * PART + i] - all.x) / all.y;
}
extern "C" size_t hiera_workspace_bytes(void) { return 2 * EACH * sizeof(float2); }
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void* workspace, cudaStream_t stream) {
    float2* partial = (float2*)workspace;
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = 2 * EACH;
    how.blockDim = THREADS;
    how.stream = stream;
    how.attrs = &early;
    how.numAttrs = 1;
    sums<<<2 * EACH, THREADS, 0, stream>>>(in->x, partial);
    return cudaLaunchKernelEx(&how, divide, (const float*)in->x, (const float2*)partial, out->out);
}
