// Planted: the lanes of a warp walk down a column, so that each of them touches a sector of its own.
#include "contract.h"
#include <cuda_runtime.h>

constexpr int kRows = HIERA_DIM_x_0, kColumns = HIERA_DIM_x_1;

__global__ void scale(const float* x, float* out) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const size_t at = (i % kRows) * kColumns + i / kRows;
    out[at] = x[at] * 1.5f + .5f;
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    scale<<<kRows * kColumns / 256, 256, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
