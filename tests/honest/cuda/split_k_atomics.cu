// 64 blocks share the sums and add to the output in whatever order they end: not deterministic, and right.
// task: deep_matmul
#include "contract.h"
static const int D = 64, SPLITS = 64, K = HIERA_DIM_a_1 / SPLITS, STEP = 32;
__global__ void product(const float* a, const float* b, float* y) {
    __shared__ float left[D][STEP + 1], right[STEP][D];
    const int ty = threadIdx.x / 16 * 4, tx = threadIdx.x % 16 * 4;
    float sum[4][4] = {};
    for (int k0 = blockIdx.x * K; k0 < (blockIdx.x + 1) * K; k0 += STEP) {
        for (int i = threadIdx.x; i < D * STEP; i += 256) {
            left[i / STEP][i % STEP] = a[i / STEP * HIERA_DIM_a_1 + k0 + i % STEP];
            right[i / D][i % D] = b[(k0 + i / D) * D + i % D];
        }
        __syncthreads();
        for (int k = 0; k < STEP; k++)
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) sum[i][j] += left[ty + i][k] * right[k][tx + j];
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) atomicAdd(y + (ty + i) * D + tx + j, sum[i][j]);
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    cudaMemsetAsync(out->out, 0, sizeof(float) * HIERA_NUMEL_out, stream);
    product<<<SPLITS, 256, 0, stream>>>(in->a, in->b, out->out);
    return cudaGetLastError();
}
