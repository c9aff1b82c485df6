// Four columns a warp share what is read of x; both operands come by cp.async in three stages.
#include "contract.h"
#include <cstring>
#include <cuda_pipeline.h>
static const int M = 16, K = 4096, N = 4096, T = 256, STAGES = 3, C = 16;

__device__ void unpack(const __half* from, float* to) {
    const uint4 v = *reinterpret_cast<const uint4*>(from);
    __half2 h[4];
    memcpy(h, &v, sizeof v);
    for (int i = 0; i < 4; i++) to[2 * i] = __low2float(h[i]), to[2 * i + 1] = __high2float(h[i]);
}

__global__ void __launch_bounds__(128) product(const __half* __restrict__ x, const __half* __restrict__ w, __half* __restrict__ y) {
    __shared__ alignas(16) __half a[STAGES][M][T], b[STAGES][C][T];
    const int column = blockIdx.x * C, own = threadIdx.x / 32 * 4, lane = threadIdx.x % 32;
    float sum[M][4] = {};
    auto load = [&](int t) {
        if (t < K / T)
            for (int r = threadIdx.x / 32; r < 16; r += 4) {
                __pipeline_memcpy_async(&a[t % STAGES][r][lane * 8], x + r * K + t * T + lane * 8, 16);
                __pipeline_memcpy_async(&b[t % STAGES][r][lane * 8], w + (column + r) * K + t * T + lane * 8, 16);
            }
        __pipeline_commit();
    };
    load(0);
    load(1);
    for (int t = 0; t < K / T; t++) {
        __pipeline_wait_prior(1);
        __syncthreads();
        load(t + 2);
        float v[4][8];
        for (int j = 0; j < 4; j++) unpack(&b[t % STAGES][own + j][lane * 8], v[j]);
#pragma unroll
        for (int m = 0; m < M; m++) {
            float u[8];
            unpack(&a[t % STAGES][m][lane * 8], u);
            for (int j = 0; j < 4; j++)
                for (int l = 0; l < 8; l++) sum[m][j] += u[l] * v[j][l];
        }
    }
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            for (int d = 16; d; d /= 2) sum[m][j] += __shfl_xor_sync(~0u, sum[m][j], d);
            if (lane == j) y[m * N + column + own + j] = __float2half(sum[m][j]);
        }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    product<<<N / C, 128, 0, stream>>>(in->x, p->fc_weight, out->out);
    return cudaGetLastError();
}
