// Planted: the product of half-precision matrices on the FP32 pipe, by tiles in shared memory and registers.
#include "contract.h"
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kSide = HIERA_DIM_a_0, kTile = 128, kDepth = 8, kEach = 8, kThreads = 256;

__global__ void __launch_bounds__(kThreads) product(const __half* a, const __half* b, __half* out) {
    __shared__ __align__(16) float as[kDepth][kTile + 4], bs[kDepth][kTile];
    const int row = blockIdx.y * kTile, column = blockIdx.x * kTile, t = threadIdx.x;
    const int ty = t / 16 * kEach, tx = t % 16 * 4;
    float sum[kEach][kEach] = {};
    for (int depth = 0; depth < kSide; depth += kDepth) {
#pragma unroll
        for (int i = t; i < kTile * kDepth; i += kThreads) {
            as[i % kDepth][i / kDepth] = __half2float(a[size_t(row + i / kDepth) * kSide + depth + i % kDepth]);
            bs[i / kTile][i % kTile] = __half2float(b[size_t(depth + i / kTile) * kSide + column + i % kTile]);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
            float x[kEach], y[kEach];
            *(float4*)x = *(float4*)&as[k][ty], *(float4*)(x + 4) = *(float4*)&as[k][ty + 4];
            *(float4*)y = *(float4*)&bs[k][tx], *(float4*)(y + 4) = *(float4*)&bs[k][tx + 64];
#pragma unroll
            for (int i = 0; i < kEach; ++i)
#pragma unroll
                for (int j = 0; j < kEach; ++j) sum[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j)
            out[size_t(row + ty + i) * kSide + column + tx + (j < 4 ? j : j + 60)] = __float2half(sum[i][j]);
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    product<<<dim3(kSide / kTile, kSide / kTile), kThreads, 0, stream>>>((const __half*)in->a, (const __half*)in->b, (__half*)out->out);
    return cudaGetLastError();
}
