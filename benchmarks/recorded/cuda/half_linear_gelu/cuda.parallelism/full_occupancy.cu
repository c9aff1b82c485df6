// Small tiles of 32 x 64 and few registers, so that six blocks stay on each multiprocessor.
#include "contract.h"
static const int M = 2048, K = 1024, N = 2048, TM = 32, TN = 64, S = 32;

__device__ float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }

__device__ void fill(float (*tile)[S + 1], int rows, const __half* from) {
    for (int i = threadIdx.x; i < rows * S / 2; i += 256) {
        const int r = i / (S / 2), c = i % (S / 2) * 2;
        const float2 v = __half22float2(*reinterpret_cast<const __half2*>(from + r * K + c));
        tile[r][c] = v.x, tile[r][c + 1] = v.y;
    }
}

__global__ void __launch_bounds__(256, 6) product(const __half* __restrict__ x, const __half* __restrict__ w, const __half* __restrict__ bias, __half* __restrict__ y) {
    __shared__ float a[TM][S + 1], b[TN][S + 1];
    const int row = blockIdx.y * TM, column = blockIdx.x * TN, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float sum[2][4] = {};
    for (int k0 = 0; k0 < K; k0 += S) {
        fill(a, TM, x + row * K + k0);
        fill(b, TN, w + column * K + k0);
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < S; k++)
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++) sum[i][j] += a[ty + 16 * i][k] * b[tx + 16 * j][k];
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++) {
            const int c = column + tx + 16 * j;
            y[(row + ty + 16 * i) * N + c] = __float2half(gelu(sum[i][j] + __half2float(bias[c])));
        }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    product<<<dim3(N / TN, M / TM), 256, 0, stream>>>(in->x, p->fc_weight, p->fc_bias, out->out);
    return cudaGetLastError();
}
