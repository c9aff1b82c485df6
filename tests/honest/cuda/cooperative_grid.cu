// A cooperative launch: all blocks meet in the middle of one kernel.
// task: softmax
#include "contract.h"
#include <cooperative_groups.h>
static const int N = 65536, EACH = 32, PART = N / EACH;
__device__ float combined(float v, bool greatest) {
    __shared__ float warps[8];
    for (int step = 16; step; step /= 2) {
        float other = __shfl_xor_sync(~0u, v, step);
        v = greatest ? fmaxf(v, other) : v + other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = warps[0];
    for (int w = 1; w < 8; w++) v = greatest ? fmaxf(v, warps[w]) : v + warps[w];
    return v;
}
__global__ void softmax(const float* x, float* y, float2* partial) {
    const int row = blockIdx.x / EACH, from = row * N + blockIdx.x % EACH * PART;
    float top = -INFINITY, sum = 0, total = 0;
    for (int i = threadIdx.x; i < PART; i += blockDim.x) top = fmaxf(top, x[from + i]);
    top = combined(top, true);
    for (int i = threadIdx.x; i < PART; i += blockDim.x) sum += expf(x[from + i] - top);
    sum = combined(sum, false);
    if (threadIdx.x == 0) partial[blockIdx.x] = {top, sum};
    cooperative_groups::this_grid().sync();
    float all = -INFINITY;
    for (int n = 0; n < EACH; n++) all = fmaxf(all, partial[row * EACH + n].x);
    for (int n = 0; n < EACH; n++) total += partial[row * EACH + n].y * expf(partial[row * EACH + n].x - all);
    for (int i = threadIdx.x; i < PART; i += blockDim.x) y[from + i] = expf(x[from + i] - all) / total;
}
extern "C" size_t hiera_workspace_bytes(void) { return 2 * EACH * sizeof(float2); }
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void* workspace, cudaStream_t stream) {
    const float* x = in->x;
    float* y = out->out;
    void* arguments[] = {&x, &y, &workspace};
    return cudaLaunchCooperativeKernel(softmax, dim3(2 * EACH), dim3(256), arguments, 0, stream);
}
