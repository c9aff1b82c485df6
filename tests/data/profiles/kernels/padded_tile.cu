// The twin without conflicts: each row of the tile is one element longer.
#include "contract.h"
#include <cuda_runtime.h>

constexpr int kSide = HIERA_DIM_x_0, kTile = 32, kRows = 8;

__global__ void transpose(const float* x, float* out) {
    __shared__ float tile[kTile][kTile + 1];
    const int column = blockIdx.x * kTile, row = blockIdx.y * kTile;
#pragma unroll
    for (int k = threadIdx.y; k < kTile; k += kRows)
        tile[k][threadIdx.x] = x[size_t(row + k) * kSide + column + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int k = threadIdx.y; k < kTile; k += kRows)
        out[size_t(column + k) * kSide + row + threadIdx.x] = tile[threadIdx.x][k];
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    transpose<<<dim3(kSide / kTile, kSide / kTile), dim3(kTile, kRows), 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
