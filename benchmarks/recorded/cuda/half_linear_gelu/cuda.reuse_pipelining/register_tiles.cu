// 8 x 8 results a thread in registers; the next tiles come by cp.async into a second buffer; GELU on the registers.
#include "contract.h"
#include <cuda_pipeline.h>
static const int M = 2048, K = 1024, N = 2048, T = 128, S = 32;

__device__ float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }

__global__ void __launch_bounds__(256, 2) product(const __half* __restrict__ x, const __half* __restrict__ w, const __half* __restrict__ bias, __half* __restrict__ y) {
    __shared__ alignas(16) __half a[2][T][S + 4], b[2][T][S + 4];
    const int row = blockIdx.y * T, column = blockIdx.x * T, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const int r = threadIdx.x / 8, c = threadIdx.x % 8 * 4;
    float sum[8][8] = {};
    auto load = [&](int stage, int k) {
        for (int i = r; i < T; i += 32) {
            __pipeline_memcpy_async(&a[stage][i][c], x + (row + i) * K + k + c, 8);
            __pipeline_memcpy_async(&b[stage][i][c], w + (column + i) * K + k + c, 8);
        }
        __pipeline_commit();
    };
    load(0, 0);
    for (int t = 0; t < K / S; t++) {
        if (t + 1 < K / S) load((t + 1) % 2, (t + 1) * S);
        __pipeline_wait_prior(t + 1 < K / S ? 1 : 0);
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < S; k += 2) {
            float2 u[8], v[8];
            for (int i = 0; i < 8; i++) u[i] = __half22float2(*reinterpret_cast<const __half2*>(&a[t % 2][ty + 16 * i][k]));
            for (int j = 0; j < 8; j++) v[j] = __half22float2(*reinterpret_cast<const __half2*>(&b[t % 2][tx + 16 * j][k]));
            for (int i = 0; i < 8; i++)
                for (int j = 0; j < 8; j++) sum[i][j] += u[i].x * v[j].x + u[i].y * v[j].y;
        }
        __syncthreads();
    }
    for (int j = 0; j < 8; j++) {
        const int column_j = column + tx + 16 * j;
        const float shift = __half2float(bias[column_j]);
        for (int i = 0; i < 8; i++) y[(row + ty + 16 * i) * N + column_j] = __float2half(gelu(sum[i][j] + shift));
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    product<<<dim3(N / T, M / T), 256, 0, stream>>>(in->x, p->fc_weight, p->fc_bias, out->out);
    return cudaGetLastError();
}
