// Eight halves a load, from global and from shared memory; results are gathered in shared memory for wide stores.
#include "contract.h"
#include <cstring>
static const int M = 2048, K = 1024, N = 2048, T = 64, S = 32, P = 72;

__device__ float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }

__device__ void unpack(const __half* from, float* to) {
    const uint4 v = *reinterpret_cast<const uint4*>(from);
    __half2 h[4];
    memcpy(h, &v, sizeof v);
    for (int i = 0; i < 4; i++) to[2 * i] = __low2float(h[i]), to[2 * i + 1] = __high2float(h[i]);
}

__global__ void __launch_bounds__(256) product(const __half* __restrict__ x, const __half* __restrict__ w, const __half* __restrict__ bias, __half* __restrict__ y) {
    __shared__ alignas(16) __half a[T][S + 8], b[T][S + 8], c[T][P];
    const int row = blockIdx.y * T, column = blockIdx.x * T, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const int r = threadIdx.x / 4, q = threadIdx.x % 4 * 8;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += S) {
        *reinterpret_cast<uint4*>(&a[r][q]) = *reinterpret_cast<const uint4*>(x + (row + r) * K + k0 + q);
        *reinterpret_cast<uint4*>(&b[r][q]) = *reinterpret_cast<const uint4*>(w + (column + r) * K + k0 + q);
        __syncthreads();
        for (int k = 0; k < S; k += 8) {
            float v[4][8];
            for (int j = 0; j < 4; j++) unpack(&b[tx + 16 * j][k], v[j]);
            for (int i = 0; i < 4; i++) {
                float u[8];
                unpack(&a[ty + 16 * i][k], u);
                for (int j = 0; j < 4; j++)
                    for (int l = 0; l < 8; l++) sum[i][j] += u[l] * v[j][l];
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            c[ty + 16 * i][tx + 16 * j] = __float2half(gelu(sum[i][j] + __half2float(bias[column + tx + 16 * j])));
    __syncthreads();
    for (int i = threadIdx.x; i < T * T / 8; i += 256)
        *reinterpret_cast<uint4*>(y + (row + i / 8) * N + column + i % 8 * 8) = *reinterpret_cast<const uint4*>(&c[i / 8][i % 8 * 8]);
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    product<<<dim3(N / T, M / T), 256, 0, stream>>>(in->x, p->fc_weight, p->fc_bias, out->out);
    return cudaGetLastError();
}
