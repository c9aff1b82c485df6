// 8 x 4 results a thread in registers; the next tiles come by cp.async into a second buffer.
#include "contract.h"
#include <cuda_pipeline.h>
static const int N = 1024, TM = 128, TN = 64, K = 16;

__global__ void __launch_bounds__(256) product(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y) {
    __shared__ alignas(16) float a[2][TM][K + 4], b[2][TN][K + 4];
    const int row = blockIdx.y * TM, column = blockIdx.x * TN, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const int r = threadIdx.x / 4, c = threadIdx.x % 4 * 4;
    float sum[8][4] = {};
    auto load = [&](int stage, int k) {
        __pipeline_memcpy_async(&a[stage][r][c], x + (row + r) * N + k + c, 16);
        __pipeline_memcpy_async(&a[stage][r + 64][c], x + (row + r + 64) * N + k + c, 16);
        __pipeline_memcpy_async(&b[stage][r][c], w + (column + r) * N + k + c, 16);
        __pipeline_commit();
    };
    load(0, 0);
    for (int t = 0; t < N / K; t++) {
        if (t + 1 < N / K) load((t + 1) % 2, (t + 1) * K);
        __pipeline_wait_prior(t + 1 < N / K ? 1 : 0);
        __syncthreads();
        for (int k = 0; k < K; k += 4) {
            float4 u[8], v[4];
            for (int i = 0; i < 8; i++) u[i] = *reinterpret_cast<const float4*>(&a[t % 2][ty + 16 * i][k]);
            for (int j = 0; j < 4; j++) v[j] = *reinterpret_cast<const float4*>(&b[t % 2][tx + 16 * j][k]);
            for (int i = 0; i < 8; i++)
                for (int j = 0; j < 4; j++) sum[i][j] += u[i].x * v[j].x + u[i].y * v[j].y + u[i].z * v[j].z + u[i].w * v[j].w;
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 4; j++) y[(row + ty + 16 * i) * N + column + tx + 16 * j] = sum[i][j];
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    product<<<dim3(N / TN, N / TM), 256, 0, stream>>>(in->x, p->fc_weight, out->out);
    return cudaGetLastError();
}
