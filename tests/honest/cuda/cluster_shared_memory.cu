// Eight blocks of a cluster hold one row and read each other's partial results from distributed shared memory.
// task: softmax
// needs: 9.0
#include "contract.h"
#include <cooperative_groups.h>
static const int N = 65536, EACH = 8, PART = N / EACH, THREADS = 512;
__device__ float combined(float v, bool greatest) {
    __shared__ float warps[THREADS / 32];
    for (int step = 16; step; step /= 2) {
        float other = __shfl_xor_sync(~0u, v, step);
        v = greatest ? fmaxf(v, other) : v + other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = warps[0];
    for (int w = 1; w < THREADS / 32; w++) v = greatest ? fmaxf(v, warps[w]) : v + warps[w];
    return v;
}
__global__ void __cluster_dims__(EACH, 1, 1) softmax(const float* x, float* y) {
    __shared__ float2 own;
    auto cluster = cooperative_groups::this_cluster();
    const int from = blockIdx.x * PART;
    float top = -INFINITY, sum = 0, all = -INFINITY, total = 0;
    for (int i = threadIdx.x; i < PART; i += THREADS) top = fmaxf(top, x[from + i]);
    top = combined(top, true);
    for (int i = threadIdx.x; i < PART; i += THREADS) sum += expf(x[from + i] - top);
    sum = combined(sum, false);
    if (threadIdx.x == 0) own = {top, sum};
    cluster.sync();
    for (int n = 0; n < EACH; n++) all = fmaxf(all, cluster.map_shared_rank(&own, n)->x);
    for (int n = 0; n < EACH; n++) {
        float2 other = *cluster.map_shared_rank(&own, n);
        total += other.y * expf(other.x - all);
    }
    cluster.sync();
    for (int i = threadIdx.x; i < PART; i += THREADS) y[from + i] = expf(x[from + i] - all) / total;
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    softmax<<<2 * EACH, THREADS, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
