// Tiles come into shared memory by asynchronous copies, one stage ahead of the arithmetic.
// task: matmul
#include "contract.h"
#include <cuda_pipeline.h>
static const int N = 1024, T = 64, K = 16;
__global__ void product(const float* x, const float* w, float* y) {
    __shared__ alignas(16) float a[2][T][K], b[2][T][K];
    const int row = blockIdx.y * T, column = blockIdx.x * T, r = threadIdx.x / 4, k4 = threadIdx.x % 4 * 4;
    const int ty = threadIdx.x / 16 * 4, tx = threadIdx.x % 16 * 4;
    float sum[4][4] = {};
    auto load = [&](int stage, int k) {
        __pipeline_memcpy_async(&a[stage][r][k4], x + (row + r) * N + k + k4, 16);
        __pipeline_memcpy_async(&b[stage][r][k4], w + (column + r) * N + k + k4, 16);
        __pipeline_commit();
    };
    load(0, 0);
    for (int t = 0; t < N / K; t++) {
        if (t + 1 < N / K) load((t + 1) % 2, (t + 1) * K);
        __pipeline_wait_prior(t + 1 < N / K ? 1 : 0);
        __syncthreads();
        for (int k = 0; k < K; k++)
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) sum[i][j] += a[t % 2][ty + i][k] * b[t % 2][tx + j][k];
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) y[(row + ty + i) * N + column + tx + j] = sum[i][j];
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    product<<<dim3(N / T, N / T), 256, 0, stream>>>(in->x, p->fc_weight, out->out);
    return cudaGetLastError();
}
