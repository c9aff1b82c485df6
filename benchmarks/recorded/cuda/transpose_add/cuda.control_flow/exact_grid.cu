// A grid that fits exactly, so no bounds checks; four rows per thread, unrolled.
#include "contract.h"

const int N = HIERA_DIM_x_0;

__global__ void add(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out) {
    const int c = blockIdx.x * 32 + threadIdx.x, r = (blockIdx.y * 8 + threadIdx.y) * 4;
    const float* column = x + size_t(c) * N + r;
#pragma unroll
    for (int i = 0; i < 4; i++) out[size_t(r + i) * N + c] = column[i] + y[size_t(r + i) * N + c];
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    add<<<dim3(N / 32, N / 32), dim3(32, 8), 0, stream>>>(in->x, in->y, out->out);
    return cudaGetLastError();
}
