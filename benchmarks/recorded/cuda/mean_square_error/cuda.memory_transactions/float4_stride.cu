// Grid-stride loop over float4 of both matrices, partial sums in the workspace.
#include "contract.h"

const int N = HIERA_NUMEL_a, THREADS = 256, BLOCKS = 1024;

__device__ float block_sum(float s) {
    __shared__ float part[THREADS / 32];
    for (int o = 16; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    s = part[threadIdx.x % (THREADS / 32)];
    for (int o = THREADS / 64; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
    return s;
}

__global__ void squares(const float4* a, const float4* b, float* part) {
    float s = 0;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < N / 4; i += BLOCKS * THREADS) {
        const float4 u = a[i], v = b[i];
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
