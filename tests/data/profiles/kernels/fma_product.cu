// Planted: the product of half-precision matrices on the FP32 pipe, by tiles in shared memory and registers.
#include "contract.h"
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kSide = HIERA_DIM_a_0, kTile = 64, kDepth = 16, kEach = 4;

__global__ void __launch_bounds__(256) product(const __half* a, const __half* b, __half* out) {
    __shared__ float as[kDepth][kTile + 4], bs[kDepth][kTile];
    const int row = blockIdx.y * kTile, column = blockIdx.x * kTile, t = threadIdx.x;
    const int ty = t / 16 * kEach, tx = t % 16 * kEach;
    float sum[kEach][kEach] = {};
    for (int depth = 0; depth < kSide; depth += kDepth) {
        for (int i = t; i < kTile * kDepth; i += 256) {
            as[i % kDepth][i / kDepth] = __half2float(a[size_t(row + i / kDepth) * kSide + depth + i % kDepth]);
            bs[i / kTile][i % kTile] = __half2float(b[size_t(depth + i / kTile) * kSide + column + i % kTile]);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kDepth; ++k)
#pragma unroll
            for (int i = 0; i < kEach; ++i)
#pragma unroll
                for (int j = 0; j < kEach; ++j) sum[i][j] += as[k][ty + i] * bs[k][tx + j];
        __syncthreads();
    }
    for (int i = 0; i < kEach; ++i)
        for (int j = 0; j < kEach; ++j) out[size_t(row + ty + i) * kSide + column + tx + j] = __float2half(sum[i][j]);
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    product<<<dim3(kSide / kTile, kSide / kTile), 256, 0, stream>>>((const __half*)in->a, (const __half*)in->b, (__half*)out->out);
    return cudaGetLastError();
}
