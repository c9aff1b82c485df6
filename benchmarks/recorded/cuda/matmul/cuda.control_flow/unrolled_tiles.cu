// Tile and block shape by template: no bounds to test, and the loops over a tile are unrolled.
#include "contract.h"
static const int N = 1024;

template <int T, int ROWS>
__global__ void product(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y) {
    constexpr int STEP = T / ROWS;
    __shared__ float a[T][T], b[T][T + 1];
    const int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * T, column = blockIdx.x * T;
    float sum[ROWS] = {};
#pragma unroll 1
    for (int k0 = 0; k0 < N; k0 += T) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            a[ty + i * STEP][tx] = x[(row + ty + i * STEP) * N + k0 + tx];
            b[ty + i * STEP][tx] = w[(column + ty + i * STEP) * N + k0 + tx];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < T; k++) {
            const float v = b[tx][k];
#pragma unroll
            for (int i = 0; i < ROWS; i++) sum[i] += a[ty + i * STEP][k] * v;
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) y[(row + ty + i * STEP) * N + column + tx] = sum[i];
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    product<32, 4><<<dim3(N / 32, N / 32), dim3(32, 8), 0, stream>>>(in->x, p->fc_weight, out->out);
    return cudaGetLastError();
}
